# src/ has four layers and the wire between the last two. A directory in a layer is a component. A layer can include
# the headers of the layers that are listed for it here, as "component/header.h"; within these, tests/check_layers.py
# enforces the dependencies between the components. What a component does differently on each architecture is in its layer's
# arch/ARCHITECTURE/component; only the directory of the architecture that is built for is seen.
string(REGEX REPLACE "^(amd64|AMD64)$" "x86_64" CLRSNAP_ARCH "${CMAKE_SYSTEM_PROCESSOR}")
if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/core/arch/${CLRSNAP_ARCH})
  message(FATAL_ERROR "clrsnap does not run on ${CMAKE_SYSTEM_PROCESSOR}: there is no src/core/arch/${CLRSNAP_ARCH}.")
endif()
set(COMPONENTS_core base mem pe contract clr images native codemap unwind walk)
set(COMPONENTS_library signal threads life snapshot dropin)
set(COMPONENTS_agent state engines sampling events reporting agent clr_names)
set(COMPONENTS_command util net metadata symbols demangle remote objects process recording naming session profile formats page push stack async top guest)

set(SEES_core core core/arch/${CLRSNAP_ARCH})
set(SEES_wire ${SEES_core} .)
set(SEES_library ${SEES_core} library library/arch/${CLRSNAP_ARCH})
set(SEES_agent ${SEES_library} agent agent/arch/${CLRSNAP_ARCH} .) # . for wire/
set(SEES_command ${SEES_core} command command/arch/${CLRSNAP_ARCH} .)
set(SEES_all ${SEES_library} agent agent/arch/${CLRSNAP_ARCH} command command/arch/${CLRSNAP_ARCH} .)

# The signal-safe island: the code that a handler may run. It is one archive, whose undefined symbols are checked.
set(ISLAND_COMPONENTS mem images codemap unwind walk signal)

# clrsnap_sees(TARGET LAYER): adds the include paths of the headers that a layer can include.
function(clrsnap_sees target layer)
  list(TRANSFORM SEES_${layer} PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE folders)
  target_include_directories(${target} PRIVATE ${folders} ${PROJECT_SOURCE_DIR}/include)
endfunction()

# clrsnap_components(LAYER): adds an object library cs_COMPONENT for each component outside of the island.
function(clrsnap_components layer)
  foreach(component ${COMPONENTS_${layer}})
    if(NOT component IN_LIST ISLAND_COMPONENTS)
      file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/${component}/*.[cS]
        ${PROJECT_SOURCE_DIR}/src/${layer}/arch/${CLRSNAP_ARCH}/${component}/*.[cS])
      add_library(cs_${component} OBJECT ${sources})
      clrsnap_sees(cs_${component} ${layer})
    endif()
  endforeach()
endfunction()

# clrsnap_island(LAYER...): adds the island, which has components of several layers. No stack protector (it reads TLS), no
# calls that the compiler invents, no sanitizer in a handler.
function(clrsnap_island)
  set(island_sources)
  foreach(layer ${ARGN})
    foreach(component ${ISLAND_COMPONENTS})
      file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/${component}/*.c
        ${PROJECT_SOURCE_DIR}/src/${layer}/arch/${CLRSNAP_ARCH}/${component}/*.c)
      list(APPEND island_sources ${sources})
    endforeach()
  endforeach()
  add_library(cs_island STATIC ${island_sources})
  clrsnap_sees(cs_island library)
  target_compile_options(cs_island PRIVATE -fno-stack-protector -fno-tree-loop-distribute-patterns -fno-sanitize=all -O2)
  if(CLRSNAP_ARCH STREQUAL "x86_64")
    target_compile_options(cs_island PRIVATE -minline-all-stringops)
  elseif(CLRSNAP_ARCH STREQUAL "aarch64")
    target_compile_options(cs_island PRIVATE -mno-outline-atomics) # calls of libgcc
  endif()
endfunction()
