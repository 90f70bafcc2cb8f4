// A guest with the full protobuf library: it makes descriptors at run time, and a message from them.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include <string>

extern "C" __attribute__((visibility("default"))) int coexist_run() {
  namespace pb = google::protobuf;
  pb::FileDescriptorProto file;
  file.set_name("coexist.proto");
  file.set_package("onnx");
  pb::DescriptorProto* type = file.add_message_type();
  type->set_name("ModelProto");
  pb::FieldDescriptorProto* field = type->add_field();
  field->set_name("ir_version");
  field->set_number(1);
  field->set_type(pb::FieldDescriptorProto::TYPE_INT64);
  field->set_label(pb::FieldDescriptorProto::LABEL_OPTIONAL);
  pb::DescriptorPool pool;
  const pb::FileDescriptor* built = pool.BuildFile(file);
  if (built == nullptr) return 1;
  pb::DynamicMessageFactory factory(&pool);
  const pb::Descriptor* descriptor = built->message_type(0);
  std::unique_ptr<pb::Message> message(factory.GetPrototype(descriptor)->New());
  message->GetReflection()->SetInt64(message.get(), descriptor->field(0), 8);
  std::unique_ptr<pb::Message> copy(factory.GetPrototype(descriptor)->New());
  if (!copy->ParseFromString(message->SerializeAsString())) return 2;
  return copy->GetReflection()->GetInt64(*copy, descriptor->field(0)) == 8 ? 0 : 3;
}
