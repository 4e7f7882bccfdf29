// SPDX-License-Identifier: MIT
// The metadata reader, IMetaDataImport and IMetaDataImport2, under Microsoft's names and in its
// order. One table of functions describes both: an object that has accepted QueryInterface for
// IMetaDataImport has the slots up to IsGlobal, one that has accepted it for IMetaDataImport2 has
// all of them.
#ifndef CLRSNAP_CORMETA_H
#define CLRSNAP_CORMETA_H

#include "clrsnap/cortypes.h"

static const GUID IID_IMetaDataImport __attribute__((unused)) = {
    0x7DAC8207, 0xD3AE, 0x4C75, {0x9B, 0x67, 0x92, 0x80, 0x1A, 0x49, 0x7D, 0x44}};
static const GUID IID_IMetaDataImport2 __attribute__((unused)) = {
    0xFCE5EFA0, 0x8BBA, 0x4F8E, {0xA0, 0x36, 0x8F, 0x20, 0x22, 0xB0, 0x84, 0x66}};

// For the openFlags of GetModuleMetaData.
#define ofRead 0x0u
#define ofWrite 0x1u

typedef struct IMetaDataImport2 IMetaDataImport2;
typedef struct IMetaDataImport2 IMetaDataImport;

// clang-format off
// An enumeration: *phEnum is NULL at first, S_FALSE means that nothing is left, CloseEnum ends it.
#define CLRSNAP_ENUM_ALL(name) \
  HRESULT (*name)(IMetaDataImport2 *, HCORENUM * phEnum, mdToken r[], ULONG cMax, ULONG * pc)
#define CLRSNAP_ENUM_OF(name) \
  HRESULT (*name)             \
  (IMetaDataImport2 *, HCORENUM * phEnum, mdToken tk, mdToken r[], ULONG cMax, ULONG * pc)
#define CLRSNAP_ENUM_NAMED(name)                                                          \
  HRESULT (*name)                                                                         \
  (IMetaDataImport2 *, HCORENUM * phEnum, mdTypeDef cl, const WCHAR *szName, mdToken r[], \
   ULONG cMax, ULONG *pc)
#define CLRSNAP_FIND(name)                                                                  \
  HRESULT (*name)                                                                           \
  (IMetaDataImport2 *, mdToken td, const WCHAR *szName, PCCOR_SIGNATURE pvSig, ULONG cbSig, \
   mdToken *pmb)

typedef struct IMetaDataImport2Vtbl {
  HRESULT (*QueryInterface)(IMetaDataImport2 *, REFIID iid, void **out);
  ULONG (*AddRef)(IMetaDataImport2 *);
  ULONG (*Release)(IMetaDataImport2 *);
  // IMetaDataImport
  void (*CloseEnum)(IMetaDataImport2 *, HCORENUM hEnum);  // slot 3
  HRESULT (*CountEnum)(IMetaDataImport2 *, HCORENUM hEnum, ULONG *pulCount);
  HRESULT (*ResetEnum)(IMetaDataImport2 *, HCORENUM hEnum, ULONG ulPos);
  CLRSNAP_ENUM_ALL(EnumTypeDefs);
  CLRSNAP_ENUM_OF(EnumInterfaceImpls);
  CLRSNAP_ENUM_ALL(EnumTypeRefs);
  HRESULT (*FindTypeDefByName)
  (IMetaDataImport2 *, const WCHAR *szTypeDef, mdToken tkEnclosing, mdTypeDef *ptd);
  HRESULT (*GetScopeProps)
  (IMetaDataImport2 *, WCHAR *szName, ULONG cchName, ULONG *pchName, GUID *pmvid);
  HRESULT (*GetModuleFromScope)(IMetaDataImport2 *, mdModule *pmd);
  HRESULT (*GetTypeDefProps)
  (IMetaDataImport2 *, mdTypeDef td, WCHAR *szTypeDef, ULONG cchTypeDef, ULONG *pchTypeDef,
   DWORD *pdwTypeDefFlags, mdToken *ptkExtends);
  HRESULT (*GetInterfaceImplProps)
  (IMetaDataImport2 *, mdInterfaceImpl iiImpl, mdTypeDef *pClass, mdToken *ptkIface);
  HRESULT (*GetTypeRefProps)
  (IMetaDataImport2 *, mdTypeRef tr, mdToken *ptkResolutionScope, WCHAR *szName, ULONG cchName,
   ULONG *pchName);
  HRESULT (*ResolveTypeRef)
  (IMetaDataImport2 *, mdTypeRef tr, REFIID riid, void **ppIScope, mdTypeDef *ptd);
  CLRSNAP_ENUM_OF(EnumMembers);
  CLRSNAP_ENUM_NAMED(EnumMembersWithName);
  CLRSNAP_ENUM_OF(EnumMethods);
  CLRSNAP_ENUM_NAMED(EnumMethodsWithName);
  CLRSNAP_ENUM_OF(EnumFields);
  CLRSNAP_ENUM_NAMED(EnumFieldsWithName);
  CLRSNAP_ENUM_OF(EnumParams);
  CLRSNAP_ENUM_OF(EnumMemberRefs);
  HRESULT (*EnumMethodImpls)
  (IMetaDataImport2 *, HCORENUM *phEnum, mdTypeDef td, mdToken rMethodBody[], mdToken rMethodDecl[],
   ULONG cMax, ULONG *pcTokens);
  HRESULT (*EnumPermissionSets)
  (IMetaDataImport2 *, HCORENUM *phEnum, mdToken tk, DWORD dwActions, mdPermission rPermission[],
   ULONG cMax, ULONG *pcTokens);
  CLRSNAP_FIND(FindMember);
  CLRSNAP_FIND(FindMethod);
  CLRSNAP_FIND(FindField);
  CLRSNAP_FIND(FindMemberRef);
  HRESULT (*GetMethodProps)
  (IMetaDataImport2 *, mdMethodDef mb, mdTypeDef *pClass, WCHAR *szMethod, ULONG cchMethod,
   ULONG *pchMethod, DWORD *pdwAttr, PCCOR_SIGNATURE *ppvSigBlob, ULONG *pcbSigBlob,
   ULONG *pulCodeRVA,
   DWORD *pdwImplFlags);  // slot 30
  HRESULT (*GetMemberRefProps)
  (IMetaDataImport2 *, mdMemberRef mr, mdToken *ptk, WCHAR *szMember, ULONG cchMember,
   ULONG *pchMember, PCCOR_SIGNATURE *ppvSigBlob, ULONG *pcbSig);
  CLRSNAP_ENUM_OF(EnumProperties);
  CLRSNAP_ENUM_OF(EnumEvents);
  HRESULT (*GetEventProps)
  (IMetaDataImport2 *, mdEvent ev, mdTypeDef *pClass, WCHAR *szEvent, ULONG cchEvent,
   ULONG *pchEvent, DWORD *pdwEventFlags, mdToken *ptkEventType, mdMethodDef *pmdAddOn,
   mdMethodDef *pmdRemoveOn, mdMethodDef *pmdFire, mdMethodDef rmdOtherMethod[], ULONG cMax,
   ULONG *pcOtherMethod);
  CLRSNAP_ENUM_OF(EnumMethodSemantics);
  HRESULT (*GetMethodSemantics)
  (IMetaDataImport2 *, mdMethodDef mb, mdToken tkEventProp, DWORD *pdwSemanticsFlags);
  HRESULT (*GetClassLayout)
  (IMetaDataImport2 *, mdTypeDef td, DWORD *pdwPackSize, COR_FIELD_OFFSET rFieldOffset[],
   ULONG cMax, ULONG *pcFieldOffset, ULONG *pulClassSize);
  HRESULT (*GetFieldMarshal)
  (IMetaDataImport2 *, mdToken tk, PCCOR_SIGNATURE *ppvNativeType, ULONG *pcbNativeType);
  HRESULT (*GetRVA)(IMetaDataImport2 *, mdToken tk, ULONG *pulCodeRVA, DWORD *pdwImplFlags);
  HRESULT (*GetPermissionSetProps)
  (IMetaDataImport2 *, mdPermission pm, DWORD *pdwAction, const void **ppvPermission,
   ULONG *pcbPermission);
  HRESULT (*GetSigFromToken)
  (IMetaDataImport2 *, mdSignature mdSig, PCCOR_SIGNATURE *ppvSig, ULONG *pcbSig);
  HRESULT (*GetModuleRefProps)
  (IMetaDataImport2 *, mdModuleRef mur, WCHAR *szName, ULONG cchName, ULONG *pchName);
  CLRSNAP_ENUM_ALL(EnumModuleRefs);
  HRESULT (*GetTypeSpecFromToken)
  (IMetaDataImport2 *, mdTypeSpec typespec, PCCOR_SIGNATURE *ppvSig, ULONG *pcbSig);
  HRESULT (*GetNameFromToken)(IMetaDataImport2 *, mdToken tk, MDUTF8CSTR *pszUtf8NamePtr);
  CLRSNAP_ENUM_ALL(EnumUnresolvedMethods);
  HRESULT (*GetUserString)
  (IMetaDataImport2 *, mdString stk, WCHAR *szString, ULONG cchString, ULONG *pchString);
  HRESULT (*GetPinvokeMap)
  (IMetaDataImport2 *, mdToken tk, DWORD *pdwMappingFlags, WCHAR *szImportName, ULONG cchImportName,
   ULONG *pchImportName, mdModuleRef *pmrImportDLL);
  CLRSNAP_ENUM_ALL(EnumSignatures);
  CLRSNAP_ENUM_ALL(EnumTypeSpecs);
  CLRSNAP_ENUM_ALL(EnumUserStrings);
  HRESULT (*GetParamForMethodIndex)
  (IMetaDataImport2 *, mdMethodDef md, ULONG ulParamSeq, mdParamDef *ppd);
  HRESULT (*EnumCustomAttributes)
  (IMetaDataImport2 *, HCORENUM *phEnum, mdToken tk, mdToken tkType,
   mdCustomAttribute rCustomAttributes[], ULONG cMax, ULONG *pcCustomAttributes);
  HRESULT (*GetCustomAttributeProps)
  (IMetaDataImport2 *, mdCustomAttribute cv, mdToken *ptkObj, mdToken *ptkType, const void **ppBlob,
   ULONG *pcbSize);
  HRESULT (*FindTypeRef)
  (IMetaDataImport2 *, mdToken tkResolutionScope, const WCHAR *szName, mdTypeRef *ptr);
  HRESULT (*GetMemberProps)
  (IMetaDataImport2 *, mdToken mb, mdTypeDef *pClass, WCHAR *szMember, ULONG cchMember,
   ULONG *pchMember, DWORD *pdwAttr, PCCOR_SIGNATURE *ppvSigBlob, ULONG *pcbSigBlob,
   ULONG *pulCodeRVA, DWORD *pdwImplFlags, DWORD *pdwCPlusTypeFlag, UVCP_CONSTANT *ppValue,
   ULONG *pcchValue);
  HRESULT (*GetFieldProps)
  (IMetaDataImport2 *, mdFieldDef mb, mdTypeDef *pClass, WCHAR *szField, ULONG cchField,
   ULONG *pchField, DWORD *pdwAttr, PCCOR_SIGNATURE *ppvSigBlob, ULONG *pcbSigBlob,
   DWORD *pdwCPlusTypeFlag, UVCP_CONSTANT *ppValue, ULONG *pcchValue);
  HRESULT (*GetPropertyProps)
  (IMetaDataImport2 *, mdProperty prop, mdTypeDef *pClass, WCHAR *szProperty, ULONG cchProperty,
   ULONG *pchProperty, DWORD *pdwPropFlags, PCCOR_SIGNATURE *ppvSig, ULONG *pcbSig,
   DWORD *pdwCPlusTypeFlag, UVCP_CONSTANT *ppDefaultValue, ULONG *pcchDefaultValue,
   mdMethodDef *pmdSetter, mdMethodDef *pmdGetter, mdMethodDef rmdOtherMethod[], ULONG cMax,
   ULONG *pcOtherMethod);
  HRESULT (*GetParamProps)
  (IMetaDataImport2 *, mdParamDef tk, mdMethodDef *pmd, ULONG *pulSequence, WCHAR *szName,
   ULONG cchName, ULONG *pchName, DWORD *pdwAttr, DWORD *pdwCPlusTypeFlag, UVCP_CONSTANT *ppValue,
   ULONG *pcchValue);
  HRESULT (*GetCustomAttributeByName)
  (IMetaDataImport2 *, mdToken tkObj, const WCHAR *szName, const void **ppData, ULONG *pcbData);
  BOOL (*IsValidToken)(IMetaDataImport2 *, mdToken tk);
  HRESULT (*GetNestedClassProps)
  (IMetaDataImport2 *, mdTypeDef tdNestedClass, mdTypeDef *ptdEnclosingClass);
  HRESULT (*GetNativeCallConvFromSig)
  (IMetaDataImport2 *, const void *pvSig, ULONG cbSig, ULONG *pCallConv);
  HRESULT (*IsGlobal)(IMetaDataImport2 *, mdToken pd, int *pbGlobal);
  // IMetaDataImport2
  CLRSNAP_ENUM_OF(EnumGenericParams);  // slot 65
  HRESULT (*GetGenericParamProps)
  (IMetaDataImport2 *, mdGenericParam gp, ULONG *pulParamSeq, DWORD *pdwParamFlags,
   mdToken *ptOwner, DWORD *reserved, WCHAR *wzname, ULONG cchName, ULONG *pchName);
  HRESULT (*GetMethodSpecProps)
  (IMetaDataImport2 *, mdMethodSpec mi, mdToken *tkParent, PCCOR_SIGNATURE *ppvSigBlob,
   ULONG *pcbSigBlob);
  CLRSNAP_ENUM_OF(EnumGenericParamConstraints);
  HRESULT (*GetGenericParamConstraintProps)
  (IMetaDataImport2 *, mdGenericParamConstraint gpc, mdGenericParam *ptGenericParam,
   mdToken *ptkConstraintType);
  HRESULT (*GetPEKind)(IMetaDataImport2 *, DWORD *pdwPEKind, DWORD *pdwMachine);
  HRESULT (*GetVersionString)
  (IMetaDataImport2 *, WCHAR *pwzBuf, DWORD ccBufSize, DWORD *pccBufSize);
  CLRSNAP_ENUM_OF(EnumMethodSpecs);
} IMetaDataImport2Vtbl;
// clang-format on

struct IMetaDataImport2 {
  const IMetaDataImport2Vtbl *lpVtbl;
};

#undef CLRSNAP_ENUM_ALL
#undef CLRSNAP_ENUM_OF
#undef CLRSNAP_ENUM_NAMED
#undef CLRSNAP_FIND

CLRSNAP_ASSERT(offsetof(IMetaDataImport2Vtbl, GetTypeDefProps) == 12 * 8, "GetTypeDefProps");
CLRSNAP_ASSERT(offsetof(IMetaDataImport2Vtbl, GetMethodProps) == 30 * 8, "GetMethodProps");
CLRSNAP_ASSERT(offsetof(IMetaDataImport2Vtbl, GetNestedClassProps) == 62 * 8,
               "GetNestedClassProps");
CLRSNAP_ASSERT(offsetof(IMetaDataImport2Vtbl, EnumGenericParams) == 65 * 8, "EnumGenericParams");
CLRSNAP_ASSERT(sizeof(IMetaDataImport2Vtbl) == 73 * 8, "IMetaDataImport2: 73 slots");

#endif
