# cmake "-DFILES=a;b" -DOUTPUT=header -P digest.cmake: writes a header of comments that changes with the files. A source
# that embeds the files by .incbin includes it, since a compiler cache compares what is included, not what is embedded.
set(text "")
foreach(file IN LISTS FILES)
  file(SHA256 "${file}" digest)
  cmake_path(GET file FILENAME name)
  string(APPEND text "// ${digest} ${name}\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
