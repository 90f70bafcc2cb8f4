# cmake "-DFILES=a;b" -DOUTPUT=header -P digest.cmake: writes a header whose comments change with the contents of the
# files. A source that embeds the files with .incbin includes this header, since compiler caches compare included files
# only.
set(text "")
foreach(file IN LISTS FILES)
  file(SHA256 "${file}" digest)
  cmake_path(GET file FILENAME name)
  string(APPEND text "// ${digest} ${name}\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
