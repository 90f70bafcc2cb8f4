// The engine that links glslang.
#include <fmt/core.h>
#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <algorithm>
#include <cstring>

#include "sdk/provider/modules/helper/engine.h"

namespace tenon::provider::helper {
namespace {

constexpr int glsl_version = 460;

std::vector<char> bytes_of(const std::vector<unsigned int>& words) {
  std::vector<char> bytes(words.size() * sizeof words[0]);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::string cut(std::string said) {
  said.resize(std::min<size_t>(said.size(), most_output_bytes));
  return said;
}

}  // namespace

Outcome identify(const std::string&) {
  if (!glslang::InitializeProcess()) return {Result::failed, "glslang cannot be initialised.", {}};
  const glslang::Version version = glslang::GetVersion();
  return {Result::done,
          fmt::format("glslang {}.{}.{}\ngenerator {}", version.major, version.minor, version.patch,
                      glslang::GetSpirvGeneratorVersion()),
          {}};
}

Outcome compile(const std::string& text, const Question&) {
  glslang::TShader shader(EShLangCompute);
  const char* const data = text.c_str();
  const int size = static_cast<int>(text.size());
  shader.setStringsWithLengths(&data, &size, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, glsl_version);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  constexpr auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  if (!shader.parse(GetDefaultResources(), glsl_version, false, messages)) {
    return {Result::refused, cut(shader.getInfoLog()), {}};
  }
  std::string said = shader.getInfoLog();
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages)) return {Result::refused, cut(said + program.getInfoLog()), {}};
  std::vector<unsigned int> words;
  spv::SpvBuildLogger logger;
  glslang::SpvOptions options;
  options.disableOptimizer = true;  // the driver has its own optimizer
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &logger, &options);
  said += logger.getAllMessages();
  if (words.empty()) return {Result::failed, "glslang could not make SPIR-V from the text: " + cut(said), {}};
  return {Result::done, cut(std::move(said)), bytes_of(words)};
}

}  // namespace tenon::provider::helper
