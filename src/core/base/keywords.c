// SPDX-License-Identifier: MIT
#include "base/keywords.h"

#include <string.h>

#include "base/base.h"

static const struct {
  uint8_t element;
  const char *keyword, *system_type;
} keywords[] = {
    {0x01, "void", "Void"},       {0x02, "bool", "Boolean"},  {0x03, "char", "Char"},
    {0x04, "sbyte", "SByte"},     {0x05, "byte", "Byte"},     {0x06, "short", "Int16"},
    {0x07, "ushort", "UInt16"},   {0x08, "int", "Int32"},     {0x09, "uint", "UInt32"},
    {0x0A, "long", "Int64"},      {0x0B, "ulong", "UInt64"},  {0x0C, "float", "Single"},
    {0x0D, "double", "Double"},   {0x0E, "string", "String"}, {0x16, "TypedReference", "*"},
    {0x18, "nint", "IntPtr"},     {0x19, "nuint", "UIntPtr"}, {0x1C, "object", "Object"},
    {0x00, "decimal", "Decimal"},
};

const char *cs_keyword_of_element(uint32_t element_type) {
  for (size_t i = 0; i < CS_COUNT(keywords); i++)
    if (element_type != 0 && keywords[i].element == element_type) return keywords[i].keyword;
  return NULL;
}

const char *cs_keyword_of_type(const char *name, size_t len) {
  for (size_t i = 0; i < CS_COUNT(keywords); i++)
    if (strlen(keywords[i].system_type) == len && memcmp(keywords[i].system_type, name, len) == 0)
      return keywords[i].keyword;
  return NULL;
}
