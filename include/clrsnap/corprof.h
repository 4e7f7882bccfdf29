// SPDX-License-Identifier: MIT
// The CLR profiling API in plain C: interfaces, identifiers and slots, under Microsoft's names and
// in its order. For profilers written in C, and for callers of clrsnap.
//
// One table of functions describes a whole family: ICorProfilerInfo to ICorProfilerInfo15 are one C
// type, and so are ICorProfilerCallback to ICorProfilerCallback11. An object that has accepted
// QueryInterface for version N has the slots up to N's mark; a caller must not use slots beyond the
// version that it has asked for. Methods return S_OK or a failure unless the CLR's documentation
// says otherwise.
#ifndef CLRSNAP_CORPROF_H
#define CLRSNAP_CORPROF_H

#include "clrsnap/cormeta.h"
#include "clrsnap/cortypes.h"

// ---- Identifiers ----
#define CLRSNAP_IID(name, a, b, c, d0, d1, d2, d3, d4, d5, d6, d7) \
  static const GUID IID_##name __attribute__((unused)) = {a, b, c, {d0, d1, d2, d3, d4, d5, d6, d7}}
CLRSNAP_IID(IUnknown, 0x00000000, 0x0000, 0x0000, 0xC0, 0, 0, 0, 0, 0, 0, 0x46);
CLRSNAP_IID(IClassFactory, 0x00000001, 0x0000, 0x0000, 0xC0, 0, 0, 0, 0, 0, 0, 0x46);
CLRSNAP_IID(IMethodMalloc, 0xA0EFB28B, 0x6EE2, 0x4D7B, 0xB9, 0x83, 0xA7, 0x5E, 0xF7, 0xBE, 0xED,
            0xB8);
CLRSNAP_IID(ICorProfilerFunctionControl, 0xF0963021, 0xE1EA, 0x4732, 0x85, 0x81, 0xE0, 0x1B, 0x0B,
            0xD3, 0xC0, 0xC6);
CLRSNAP_IID(ICorProfilerAssemblyReferenceProvider, 0x66A78C24, 0x2EEF, 0x4F65, 0xB4, 0x5F, 0xDD,
            0x1D, 0x80, 0x38, 0xBF, 0x3C);
CLRSNAP_IID(ICorProfilerObjectEnum, 0x2C6269BD, 0x2D13, 0x4321, 0xAE, 0x12, 0x66, 0x86, 0x36, 0x5F,
            0xD6, 0xAF);
CLRSNAP_IID(ICorProfilerFunctionEnum, 0xFF71301A, 0xB994, 0x429D, 0xA1, 0x0B, 0xB3, 0x45, 0xA6,
            0x52, 0x80, 0xEF);
CLRSNAP_IID(ICorProfilerModuleEnum, 0xB0266D75, 0x2081, 0x4493, 0xAF, 0x7F, 0x02, 0x8B, 0xA3, 0x4D,
            0xB8, 0x91);
CLRSNAP_IID(ICorProfilerThreadEnum, 0x571194F7, 0x25ED, 0x419F, 0xAA, 0x8B, 0x70, 0x16, 0xB3, 0x15,
            0x97, 0x01);
CLRSNAP_IID(ICorProfilerMethodEnum, 0xFCCEE788, 0x0088, 0x454B, 0xA8, 0x11, 0xC9, 0x9F, 0x29, 0x8D,
            0x19, 0x42);
CLRSNAP_IID(ICorProfilerCallback, 0x176FBED1, 0xA55C, 0x4796, 0x98, 0xCA, 0xA9, 0xDA, 0x0E, 0xF8,
            0x83, 0xE7);
CLRSNAP_IID(ICorProfilerCallback2, 0x8A8CC829, 0xCCF2, 0x49FE, 0xBB, 0xAE, 0x0F, 0x02, 0x22, 0x28,
            0x07, 0x1A);
CLRSNAP_IID(ICorProfilerCallback3, 0x4FD2ED52, 0x7731, 0x4B8D, 0x94, 0x69, 0x03, 0xD2, 0xCC, 0x30,
            0x86, 0xC5);
CLRSNAP_IID(ICorProfilerCallback4, 0x7B63B2E3, 0x107D, 0x4D48, 0xB2, 0xF6, 0xF6, 0x1E, 0x22, 0x94,
            0x70, 0xD2);
CLRSNAP_IID(ICorProfilerCallback5, 0x8DFBA405, 0x8C9F, 0x45F8, 0xBF, 0xFA, 0x83, 0xB1, 0x4C, 0xEF,
            0x78, 0xB5);
CLRSNAP_IID(ICorProfilerCallback6, 0xFC13DF4B, 0x4448, 0x4F4F, 0x95, 0x0C, 0xBA, 0x8D, 0x19, 0xD0,
            0x0C, 0x36);
CLRSNAP_IID(ICorProfilerCallback7, 0xF76A2DBA, 0x1D52, 0x4539, 0x86, 0x6C, 0x2A, 0xA5, 0x18, 0xF9,
            0xEF, 0xC3);
CLRSNAP_IID(ICorProfilerCallback8, 0x5BED9B15, 0xC079, 0x4D47, 0xBF, 0xE2, 0x21, 0x5A, 0x14, 0x0C,
            0x07, 0xE0);
CLRSNAP_IID(ICorProfilerCallback9, 0x27583EC3, 0xC8F5, 0x482F, 0x80, 0x52, 0x19, 0x4B, 0x8C, 0xE4,
            0x70, 0x5A);
CLRSNAP_IID(ICorProfilerCallback10, 0xCEC5B60E, 0xC69C, 0x495F, 0x87, 0xF6, 0x84, 0xD2, 0x8E, 0xE1,
            0x6F, 0xFB);
CLRSNAP_IID(ICorProfilerCallback11, 0x42350846, 0xAAED, 0x47F7, 0xB1, 0x28, 0xFD, 0x0C, 0x98, 0x88,
            0x1C, 0xDE);
CLRSNAP_IID(ICorProfilerInfo, 0x28B5557D, 0x3F3F, 0x48B4, 0x90, 0xB2, 0x5F, 0x9E, 0xEA, 0x2F, 0x6C,
            0x48);
CLRSNAP_IID(ICorProfilerInfo2, 0xCC0935CD, 0xA518, 0x487D, 0xB0, 0xBB, 0xA9, 0x32, 0x14, 0xE6, 0x54,
            0x78);
CLRSNAP_IID(ICorProfilerInfo3, 0xB555ED4F, 0x452A, 0x4E54, 0x8B, 0x39, 0xB5, 0x36, 0x0B, 0xAD, 0x32,
            0xA0);
CLRSNAP_IID(ICorProfilerInfo4, 0x0D8FDCAA, 0x6257, 0x47BF, 0xB1, 0xBF, 0x94, 0xDA, 0xC8, 0x84, 0x66,
            0xEE);
CLRSNAP_IID(ICorProfilerInfo5, 0x07602928, 0xCE38, 0x4B83, 0x81, 0xE7, 0x74, 0xAD, 0xAF, 0x78, 0x12,
            0x14);
CLRSNAP_IID(ICorProfilerInfo6, 0xF30A070D, 0xBFFB, 0x46A7, 0xB1, 0xD8, 0x87, 0x81, 0xEF, 0x7B, 0x69,
            0x8A);
CLRSNAP_IID(ICorProfilerInfo7, 0x9AEECC0D, 0x63E0, 0x4187, 0x8C, 0x00, 0xE3, 0x12, 0xF5, 0x03, 0xF6,
            0x63);
CLRSNAP_IID(ICorProfilerInfo8, 0xC5AC80A6, 0x782E, 0x4716, 0x80, 0x44, 0x39, 0x59, 0x8C, 0x60, 0xCF,
            0xBF);
CLRSNAP_IID(ICorProfilerInfo9, 0x008170DB, 0xF8CC, 0x4796, 0x9A, 0x51, 0xDC, 0x8A, 0xA0, 0xB4, 0x70,
            0x12);
CLRSNAP_IID(ICorProfilerInfo10, 0x2F1B5152, 0xC869, 0x40C9, 0xAA, 0x5F, 0x3A, 0xBE, 0x02, 0x6B,
            0xD7, 0x20);
CLRSNAP_IID(ICorProfilerInfo11, 0x06398876, 0x8987, 0x4154, 0xB6, 0x21, 0x40, 0xA0, 0x0D, 0x6E,
            0x4D, 0x04);
CLRSNAP_IID(ICorProfilerInfo12, 0x27B24CCD, 0x1CB1, 0x47C5, 0x96, 0xEE, 0x98, 0x19, 0x0D, 0xC3,
            0x09, 0x59);
CLRSNAP_IID(ICorProfilerInfo13, 0x6E6C7EE2, 0x0701, 0x4EC2, 0x9D, 0x29, 0x2E, 0x87, 0x33, 0xB6,
            0x69, 0x34);
CLRSNAP_IID(ICorProfilerInfo14, 0xF460E352, 0xD76D, 0x4FE9, 0x83, 0x5F, 0xF6, 0xAF, 0x9D, 0x6E,
            0x86, 0x2D);
CLRSNAP_IID(ICorProfilerInfo15, 0xB446462D, 0xBD22, 0x41DD, 0x87, 0x2D, 0xDC, 0x71, 0x4C, 0x49,
            0xEB, 0x56);
#undef CLRSNAP_IID

// ---- Small interfaces ----
typedef struct IUnknown IUnknown;
typedef struct IUnknownVtbl {
  HRESULT (*QueryInterface)(IUnknown *, REFIID iid, void **out);
  ULONG (*AddRef)(IUnknown *);
  ULONG (*Release)(IUnknown *);
} IUnknownVtbl;
struct IUnknown {
  const IUnknownVtbl *lpVtbl;
};

typedef struct IClassFactory IClassFactory;
typedef struct IClassFactoryVtbl {
  HRESULT (*QueryInterface)(IClassFactory *, REFIID iid, void **out);
  ULONG (*AddRef)(IClassFactory *);
  ULONG (*Release)(IClassFactory *);
  HRESULT (*CreateInstance)(IClassFactory *, IUnknown *outer, REFIID iid, void **out);
  HRESULT (*LockServer)(IClassFactory *, BOOL lock);
} IClassFactoryVtbl;
struct IClassFactory {
  const IClassFactoryVtbl *lpVtbl;
};

// Enumerators differ only in the type of their elements.
#define CLRSNAP_ENUMERATOR(I, T)                                \
  typedef struct I I;                                           \
  typedef struct I##Vtbl {                                      \
    HRESULT (*QueryInterface)(I *, REFIID iid, void **out);     \
    ULONG (*AddRef)(I *);                                       \
    ULONG (*Release)(I *);                                      \
    HRESULT (*Skip)(I *, ULONG celt);                           \
    HRESULT (*Reset)(I *);                                      \
    HRESULT (*Clone)(I *, I **ppEnum);                          \
    HRESULT (*GetCount)(I *, ULONG *pcelt);                     \
    HRESULT (*Next)(I *, ULONG celt, T elements[], ULONG *got); \
  } I##Vtbl;                                                    \
  struct I {                                                    \
    const I##Vtbl *lpVtbl;                                      \
  }
CLRSNAP_ENUMERATOR(ICorProfilerObjectEnum, ObjectID);
CLRSNAP_ENUMERATOR(ICorProfilerFunctionEnum, COR_PRF_FUNCTION);
CLRSNAP_ENUMERATOR(ICorProfilerModuleEnum, ModuleID);
CLRSNAP_ENUMERATOR(ICorProfilerThreadEnum, ThreadID);
CLRSNAP_ENUMERATOR(ICorProfilerMethodEnum, COR_PRF_METHOD);
#undef CLRSNAP_ENUMERATOR

typedef struct IMethodMalloc IMethodMalloc;
typedef struct IMethodMallocVtbl {
  HRESULT (*QueryInterface)(IMethodMalloc *, REFIID iid, void **out);
  ULONG (*AddRef)(IMethodMalloc *);
  ULONG (*Release)(IMethodMalloc *);
  void *(*Alloc)(IMethodMalloc *, ULONG cb);
} IMethodMallocVtbl;
struct IMethodMalloc {
  const IMethodMallocVtbl *lpVtbl;
};

typedef struct ICorProfilerFunctionControl ICorProfilerFunctionControl;
typedef struct ICorProfilerFunctionControlVtbl {
  HRESULT (*QueryInterface)(ICorProfilerFunctionControl *, REFIID iid, void **out);
  ULONG (*AddRef)(ICorProfilerFunctionControl *);
  ULONG (*Release)(ICorProfilerFunctionControl *);
  HRESULT (*SetCodegenFlags)(ICorProfilerFunctionControl *, DWORD flags);
  HRESULT(*SetILFunctionBody)
  (ICorProfilerFunctionControl *, ULONG cbNewILMethodHeader, LPCBYTE pbNewILMethodHeader);
  HRESULT(*SetILInstrumentedCodeMap)
  (ICorProfilerFunctionControl *, ULONG cILMapEntries, COR_IL_MAP rgILMapEntries[]);
} ICorProfilerFunctionControlVtbl;
struct ICorProfilerFunctionControl {
  const ICorProfilerFunctionControlVtbl *lpVtbl;
};

// Opaque: nothing here reads it.
typedef struct ICorProfilerAssemblyReferenceProvider ICorProfilerAssemblyReferenceProvider;

// ---- Functions that a profiler hands over ---- funcId is 0 for a run of unmanaged frames.
// `context` is NULL and contextSize 0 unless COR_PRF_SNAPSHOT_REGISTER_CONTEXT was asked for. Any
// return value but S_OK ends the walk.
typedef HRESULT StackSnapshotCallback(FunctionID funcId, UINT_PTR ip, COR_PRF_FRAME_INFO frameInfo,
                                      ULONG32 contextSize, BYTE context[], void *clientData);
typedef void FunctionEnter(FunctionID funcID);
typedef void FunctionLeave(FunctionID funcID);
typedef void FunctionTailcall(FunctionID funcID);
typedef void FunctionEnter2(FunctionID funcId, UINT_PTR clientData, COR_PRF_FRAME_INFO func,
                            COR_PRF_FUNCTION_ARGUMENT_INFO *argumentInfo);
typedef void FunctionLeave2(FunctionID funcId, UINT_PTR clientData, COR_PRF_FRAME_INFO func,
                            COR_PRF_FUNCTION_ARGUMENT_RANGE *retvalRange);
typedef void FunctionTailcall2(FunctionID funcId, UINT_PTR clientData, COR_PRF_FRAME_INFO func);
typedef void FunctionEnter3(FunctionIDOrClientID functionIDOrClientID);
typedef void FunctionLeave3(FunctionIDOrClientID functionIDOrClientID);
typedef void FunctionTailcall3(FunctionIDOrClientID functionIDOrClientID);
typedef void FunctionEnter3WithInfo(FunctionIDOrClientID functionIDOrClientID,
                                    COR_PRF_ELT_INFO eltInfo);
typedef void FunctionLeave3WithInfo(FunctionIDOrClientID functionIDOrClientID,
                                    COR_PRF_ELT_INFO eltInfo);
typedef void FunctionTailcall3WithInfo(FunctionIDOrClientID functionIDOrClientID,
                                       COR_PRF_ELT_INFO eltInfo);
typedef UINT_PTR FunctionIDMapper(FunctionID funcId, BOOL *pbHookFunction);
typedef UINT_PTR FunctionIDMapper2(FunctionID funcId, void *clientData, BOOL *pbHookFunction);
typedef BOOL ObjectReferenceCallback(ObjectID root, ObjectID *reference, void *clientData);
typedef BOOL ObjectCallback(ObjectID obj, void *callbackState);
typedef void EventPipeProviderCallback(const BYTE *source_id, UINT32 is_enabled, UINT8 level,
                                       UINT64 match_any_keywords, UINT64 match_all_keywords,
                                       void *filter_data, void *callback_data);

// ---- ICorProfilerCallback .. ICorProfilerCallback11: what a profiler implements ----
typedef struct ICorProfilerCallback11 ICorProfilerCallback11;
typedef struct ICorProfilerCallback11 ICorProfilerCallback;
typedef struct ICorProfilerCallback11 ICorProfilerCallback2;
typedef struct ICorProfilerCallback11 ICorProfilerCallback3;
typedef struct ICorProfilerCallback11 ICorProfilerCallback4;
typedef struct ICorProfilerCallback11 ICorProfilerCallback5;
typedef struct ICorProfilerCallback11 ICorProfilerCallback6;
typedef struct ICorProfilerCallback11 ICorProfilerCallback7;
typedef struct ICorProfilerCallback11 ICorProfilerCallback8;
typedef struct ICorProfilerCallback11 ICorProfilerCallback9;
typedef struct ICorProfilerCallback11 ICorProfilerCallback10;
// clang-format off
typedef struct ICorProfilerCallback11Vtbl {
  HRESULT (*QueryInterface)(ICorProfilerCallback11 *, REFIID iid, void **out);
  ULONG (*AddRef)(ICorProfilerCallback11 *);
  ULONG (*Release)(ICorProfilerCallback11 *);
  // ICorProfilerCallback: from slot 3
  HRESULT (*Initialize)(ICorProfilerCallback11 *, IUnknown *pICorProfilerInfoUnk);
  HRESULT (*Shutdown)(ICorProfilerCallback11 *);
  HRESULT (*AppDomainCreationStarted)(ICorProfilerCallback11 *, AppDomainID appDomainId);
  HRESULT (*AppDomainCreationFinished)(ICorProfilerCallback11 *, AppDomainID appDomainId,
      HRESULT hrStatus);
  HRESULT (*AppDomainShutdownStarted)(ICorProfilerCallback11 *, AppDomainID appDomainId);
  HRESULT (*AppDomainShutdownFinished)(ICorProfilerCallback11 *, AppDomainID appDomainId,
      HRESULT hrStatus);
  HRESULT (*AssemblyLoadStarted)(ICorProfilerCallback11 *, AssemblyID assemblyId);
  HRESULT (*AssemblyLoadFinished)(ICorProfilerCallback11 *, AssemblyID assemblyId,
      HRESULT hrStatus);
  HRESULT (*AssemblyUnloadStarted)(ICorProfilerCallback11 *, AssemblyID assemblyId);
  HRESULT (*AssemblyUnloadFinished)(ICorProfilerCallback11 *, AssemblyID assemblyId,
      HRESULT hrStatus);
  HRESULT (*ModuleLoadStarted)(ICorProfilerCallback11 *, ModuleID moduleId);
  HRESULT (*ModuleLoadFinished)(ICorProfilerCallback11 *, ModuleID moduleId, HRESULT hrStatus);
  HRESULT (*ModuleUnloadStarted)(ICorProfilerCallback11 *, ModuleID moduleId);
  HRESULT (*ModuleUnloadFinished)(ICorProfilerCallback11 *, ModuleID moduleId, HRESULT hrStatus);
  HRESULT (*ModuleAttachedToAssembly)(ICorProfilerCallback11 *, ModuleID moduleId,
      AssemblyID assemblyId);
  HRESULT (*ClassLoadStarted)(ICorProfilerCallback11 *, ClassID classId);
  HRESULT (*ClassLoadFinished)(ICorProfilerCallback11 *, ClassID classId, HRESULT hrStatus);
  HRESULT (*ClassUnloadStarted)(ICorProfilerCallback11 *, ClassID classId);
  HRESULT (*ClassUnloadFinished)(ICorProfilerCallback11 *, ClassID classId, HRESULT hrStatus);
  HRESULT (*FunctionUnloadStarted)(ICorProfilerCallback11 *, FunctionID functionId);
  HRESULT (*JITCompilationStarted)(ICorProfilerCallback11 *, FunctionID functionId,
      BOOL fIsSafeToBlock);
  HRESULT (*JITCompilationFinished)(ICorProfilerCallback11 *, FunctionID functionId,
      HRESULT hrStatus, BOOL fIsSafeToBlock);
  HRESULT (*JITCachedFunctionSearchStarted)(ICorProfilerCallback11 *, FunctionID functionId,
      BOOL *pbUseCachedFunction);
  HRESULT (*JITCachedFunctionSearchFinished)(ICorProfilerCallback11 *, FunctionID functionId,
      COR_PRF_JIT_CACHE result);
  HRESULT (*JITFunctionPitched)(ICorProfilerCallback11 *, FunctionID functionId);
  HRESULT (*JITInlining)(ICorProfilerCallback11 *, FunctionID callerId, FunctionID calleeId,
      BOOL *pfShouldInline);
  HRESULT (*ThreadCreated)(ICorProfilerCallback11 *, ThreadID threadId);
  HRESULT (*ThreadDestroyed)(ICorProfilerCallback11 *, ThreadID threadId);
  HRESULT (*ThreadAssignedToOSThread)(ICorProfilerCallback11 *, ThreadID managedThreadId,
      DWORD osThreadId);
  HRESULT (*RemotingClientInvocationStarted)(ICorProfilerCallback11 *);
  HRESULT (*RemotingClientSendingMessage)(ICorProfilerCallback11 *, GUID *pCookie, BOOL fIsAsync);
  HRESULT (*RemotingClientReceivingReply)(ICorProfilerCallback11 *, GUID *pCookie, BOOL fIsAsync);
  HRESULT (*RemotingClientInvocationFinished)(ICorProfilerCallback11 *);
  HRESULT (*RemotingServerReceivingMessage)(ICorProfilerCallback11 *, GUID *pCookie, BOOL fIsAsync);
  HRESULT (*RemotingServerInvocationStarted)(ICorProfilerCallback11 *);
  HRESULT (*RemotingServerInvocationReturned)(ICorProfilerCallback11 *);
  HRESULT (*RemotingServerSendingReply)(ICorProfilerCallback11 *, GUID *pCookie, BOOL fIsAsync);
  HRESULT (*UnmanagedToManagedTransition)(ICorProfilerCallback11 *, FunctionID functionId,
      COR_PRF_TRANSITION_REASON reason);
  HRESULT (*ManagedToUnmanagedTransition)(ICorProfilerCallback11 *, FunctionID functionId,
      COR_PRF_TRANSITION_REASON reason);
  HRESULT (*RuntimeSuspendStarted)(ICorProfilerCallback11 *, COR_PRF_SUSPEND_REASON suspendReason);
  HRESULT (*RuntimeSuspendFinished)(ICorProfilerCallback11 *);
  HRESULT (*RuntimeSuspendAborted)(ICorProfilerCallback11 *);
  HRESULT (*RuntimeResumeStarted)(ICorProfilerCallback11 *);
  HRESULT (*RuntimeResumeFinished)(ICorProfilerCallback11 *);
  HRESULT (*RuntimeThreadSuspended)(ICorProfilerCallback11 *, ThreadID threadId);
  HRESULT (*RuntimeThreadResumed)(ICorProfilerCallback11 *, ThreadID threadId);
  HRESULT (*MovedReferences)(ICorProfilerCallback11 *, ULONG cMovedObjectIDRanges,
      ObjectID oldObjectIDRangeStart[], ObjectID newObjectIDRangeStart[],
      ULONG cObjectIDRangeLength[]);
  HRESULT (*ObjectAllocated)(ICorProfilerCallback11 *, ObjectID objectId, ClassID classId);
  HRESULT (*ObjectsAllocatedByClass)(ICorProfilerCallback11 *, ULONG cClassCount,
      ClassID classIds[], ULONG cObjects[]);
  HRESULT (*ObjectReferences)(ICorProfilerCallback11 *, ObjectID objectId, ClassID classId,
      ULONG cObjectRefs, ObjectID objectRefIds[]);
  HRESULT (*RootReferences)(ICorProfilerCallback11 *, ULONG cRootRefs, ObjectID rootRefIds[]);
  HRESULT (*ExceptionThrown)(ICorProfilerCallback11 *, ObjectID thrownObjectId);
  HRESULT (*ExceptionSearchFunctionEnter)(ICorProfilerCallback11 *, FunctionID functionId);
  HRESULT (*ExceptionSearchFunctionLeave)(ICorProfilerCallback11 *);
  HRESULT (*ExceptionSearchFilterEnter)(ICorProfilerCallback11 *, FunctionID functionId);
  HRESULT (*ExceptionSearchFilterLeave)(ICorProfilerCallback11 *);
  HRESULT (*ExceptionSearchCatcherFound)(ICorProfilerCallback11 *, FunctionID functionId);
  HRESULT (*ExceptionOSHandlerEnter)(ICorProfilerCallback11 *, UINT_PTR unused);
  HRESULT (*ExceptionOSHandlerLeave)(ICorProfilerCallback11 *, UINT_PTR unused);
  HRESULT (*ExceptionUnwindFunctionEnter)(ICorProfilerCallback11 *, FunctionID functionId);
  HRESULT (*ExceptionUnwindFunctionLeave)(ICorProfilerCallback11 *);
  HRESULT (*ExceptionUnwindFinallyEnter)(ICorProfilerCallback11 *, FunctionID functionId);
  HRESULT (*ExceptionUnwindFinallyLeave)(ICorProfilerCallback11 *);
  HRESULT (*ExceptionCatcherEnter)(ICorProfilerCallback11 *, FunctionID functionId,
      ObjectID objectId);
  HRESULT (*ExceptionCatcherLeave)(ICorProfilerCallback11 *);
  HRESULT (*COMClassicVTableCreated)(ICorProfilerCallback11 *, ClassID wrappedClassId,
      REFGUID implementedIID, void *pVTable, ULONG cSlots);
  HRESULT (*COMClassicVTableDestroyed)(ICorProfilerCallback11 *, ClassID wrappedClassId,
      REFGUID implementedIID, void *pVTable);
  HRESULT (*ExceptionCLRCatcherFound)(ICorProfilerCallback11 *);
  HRESULT (*ExceptionCLRCatcherExecute)(ICorProfilerCallback11 *);
  // ICorProfilerCallback2: from slot 72
  HRESULT (*ThreadNameChanged)(ICorProfilerCallback11 *, ThreadID threadId, ULONG cchName,
      WCHAR name[]);
  HRESULT (*GarbageCollectionStarted)(ICorProfilerCallback11 *, int cGenerations,
      BOOL generationCollected[], COR_PRF_GC_REASON reason);
  HRESULT (*SurvivingReferences)(ICorProfilerCallback11 *, ULONG cSurvivingObjectIDRanges,
      ObjectID objectIDRangeStart[], ULONG cObjectIDRangeLength[]);
  HRESULT (*GarbageCollectionFinished)(ICorProfilerCallback11 *);
  HRESULT (*FinalizeableObjectQueued)(ICorProfilerCallback11 *, DWORD finalizerFlags,
      ObjectID objectID);
  HRESULT (*RootReferences2)(ICorProfilerCallback11 *, ULONG cRootRefs, ObjectID rootRefIds[],
      COR_PRF_GC_ROOT_KIND rootKinds[], COR_PRF_GC_ROOT_FLAGS rootFlags[], UINT_PTR rootIds[]);
  HRESULT (*HandleCreated)(ICorProfilerCallback11 *, GCHandleID handleId, ObjectID initialObjectId);
  HRESULT (*HandleDestroyed)(ICorProfilerCallback11 *, GCHandleID handleId);
  // ICorProfilerCallback3: from slot 80
  HRESULT (*InitializeForAttach)(ICorProfilerCallback11 *, IUnknown *pCorProfilerInfoUnk,
      void *pvClientData, UINT cbClientData);
  HRESULT (*ProfilerAttachComplete)(ICorProfilerCallback11 *);
  HRESULT (*ProfilerDetachSucceeded)(ICorProfilerCallback11 *);
  // ICorProfilerCallback4: from slot 83
  HRESULT (*ReJITCompilationStarted)(ICorProfilerCallback11 *, FunctionID functionId,
      ReJITID rejitId, BOOL fIsSafeToBlock);
  HRESULT (*GetReJITParameters)(ICorProfilerCallback11 *, ModuleID moduleId, mdMethodDef methodId,
      ICorProfilerFunctionControl *pFunctionControl);
  HRESULT (*ReJITCompilationFinished)(ICorProfilerCallback11 *, FunctionID functionId,
      ReJITID rejitId, HRESULT hrStatus, BOOL fIsSafeToBlock);
  HRESULT (*ReJITError)(ICorProfilerCallback11 *, ModuleID moduleId, mdMethodDef methodId,
      FunctionID functionId, HRESULT hrStatus);
  HRESULT (*MovedReferences2)(ICorProfilerCallback11 *, ULONG cMovedObjectIDRanges,
      ObjectID oldObjectIDRangeStart[], ObjectID newObjectIDRangeStart[],
      SIZE_T cObjectIDRangeLength[]);
  HRESULT (*SurvivingReferences2)(ICorProfilerCallback11 *, ULONG cSurvivingObjectIDRanges,
      ObjectID objectIDRangeStart[], SIZE_T cObjectIDRangeLength[]);
  // ICorProfilerCallback5: from slot 89
  HRESULT (*ConditionalWeakTableElementReferences)(ICorProfilerCallback11 *, ULONG cRootRefs,
      ObjectID keyRefIds[], ObjectID valueRefIds[], GCHandleID rootIds[]);
  // ICorProfilerCallback6: from slot 90
  HRESULT (*GetAssemblyReferences)(ICorProfilerCallback11 *, const WCHAR *wszAssemblyPath,
      ICorProfilerAssemblyReferenceProvider *pAsmRefProvider);
  // ICorProfilerCallback7: from slot 91
  HRESULT (*ModuleInMemorySymbolsUpdated)(ICorProfilerCallback11 *, ModuleID moduleId);
  // ICorProfilerCallback8: from slot 92
  HRESULT (*DynamicMethodJITCompilationStarted)(ICorProfilerCallback11 *, FunctionID functionId,
      BOOL fIsSafeToBlock, LPCBYTE pILHeader, ULONG cbILHeader);
  HRESULT (*DynamicMethodJITCompilationFinished)(ICorProfilerCallback11 *, FunctionID functionId,
      HRESULT hrStatus, BOOL fIsSafeToBlock);
  // ICorProfilerCallback9: from slot 94
  HRESULT (*DynamicMethodUnloaded)(ICorProfilerCallback11 *, FunctionID functionId);
  // ICorProfilerCallback10: from slot 95
  HRESULT (*EventPipeEventDelivered)(ICorProfilerCallback11 *, EVENTPIPE_PROVIDER provider,
      DWORD eventId, DWORD eventVersion, ULONG cbMetadataBlob, LPCBYTE metadataBlob,
      ULONG cbEventData, LPCBYTE eventData, LPCGUID pActivityId, LPCGUID pRelatedActivityId,
      ThreadID eventThread, ULONG numStackFrames, UINT_PTR stackFrames[]);
  HRESULT (*EventPipeProviderCreated)(ICorProfilerCallback11 *, EVENTPIPE_PROVIDER provider);
  // ICorProfilerCallback11: from slot 97
  HRESULT (*LoadAsNotificationOnly)(ICorProfilerCallback11 *, BOOL *pbNotificationOnly);
} ICorProfilerCallback11Vtbl;
// clang-format on
struct ICorProfilerCallback11 {
  const ICorProfilerCallback11Vtbl *lpVtbl;
};

// ---- ICorProfilerInfo .. ICorProfilerInfo15: what the runtime implements ----
typedef struct ICorProfilerInfo15 ICorProfilerInfo15;
typedef struct ICorProfilerInfo15 ICorProfilerInfo;
typedef struct ICorProfilerInfo15 ICorProfilerInfo2;
typedef struct ICorProfilerInfo15 ICorProfilerInfo3;
typedef struct ICorProfilerInfo15 ICorProfilerInfo4;
typedef struct ICorProfilerInfo15 ICorProfilerInfo5;
typedef struct ICorProfilerInfo15 ICorProfilerInfo6;
typedef struct ICorProfilerInfo15 ICorProfilerInfo7;
typedef struct ICorProfilerInfo15 ICorProfilerInfo8;
typedef struct ICorProfilerInfo15 ICorProfilerInfo9;
typedef struct ICorProfilerInfo15 ICorProfilerInfo10;
typedef struct ICorProfilerInfo15 ICorProfilerInfo11;
typedef struct ICorProfilerInfo15 ICorProfilerInfo12;
typedef struct ICorProfilerInfo15 ICorProfilerInfo13;
typedef struct ICorProfilerInfo15 ICorProfilerInfo14;
// clang-format off
typedef struct ICorProfilerInfo15Vtbl {
  HRESULT (*QueryInterface)(ICorProfilerInfo15 *, REFIID iid, void **out);
  ULONG (*AddRef)(ICorProfilerInfo15 *);
  ULONG (*Release)(ICorProfilerInfo15 *);
  // ICorProfilerInfo: from slot 3
  HRESULT (*GetClassFromObject)(ICorProfilerInfo15 *, ObjectID objectId, ClassID *pClassId);
  HRESULT (*GetClassFromToken)(ICorProfilerInfo15 *, ModuleID moduleId, mdTypeDef typeDef,
      ClassID *pClassId);
  HRESULT (*GetCodeInfo)(ICorProfilerInfo15 *, FunctionID functionId, LPCBYTE *pStart,
      ULONG *pcSize);
  HRESULT (*GetEventMask)(ICorProfilerInfo15 *, DWORD *pdwEvents);
  HRESULT (*GetFunctionFromIP)(ICorProfilerInfo15 *, LPCBYTE ip, FunctionID *pFunctionId);
  HRESULT (*GetFunctionFromToken)(ICorProfilerInfo15 *, ModuleID moduleId, mdToken token,
      FunctionID *pFunctionId);
  HRESULT (*GetHandleFromThread)(ICorProfilerInfo15 *, ThreadID threadId, HANDLE *phThread);
  HRESULT (*GetObjectSize)(ICorProfilerInfo15 *, ObjectID objectId, ULONG *pcSize);
  HRESULT (*IsArrayClass)(ICorProfilerInfo15 *, ClassID classId, CorElementType *pBaseElemType,
      ClassID *pBaseClassId, ULONG *pcRank);
  HRESULT (*GetThreadInfo)(ICorProfilerInfo15 *, ThreadID threadId, DWORD *pdwWin32ThreadId);
  HRESULT (*GetCurrentThreadID)(ICorProfilerInfo15 *, ThreadID *pThreadId);
  HRESULT (*GetClassIDInfo)(ICorProfilerInfo15 *, ClassID classId, ModuleID *pModuleId,
      mdTypeDef *pTypeDefToken);
  HRESULT (*GetFunctionInfo)(ICorProfilerInfo15 *, FunctionID functionId, ClassID *pClassId,
      ModuleID *pModuleId, mdToken *pToken);
  HRESULT (*SetEventMask)(ICorProfilerInfo15 *, DWORD dwEvents);
  HRESULT (*SetEnterLeaveFunctionHooks)(ICorProfilerInfo15 *, FunctionEnter *pFuncEnter,
      FunctionLeave *pFuncLeave, FunctionTailcall *pFuncTailcall);
  HRESULT (*SetFunctionIDMapper)(ICorProfilerInfo15 *, FunctionIDMapper *pFunc);
  HRESULT (*GetTokenAndMetaDataFromFunction)(ICorProfilerInfo15 *, FunctionID functionId,
      REFIID riid, void **ppImport, mdToken *pToken);
  HRESULT (*GetModuleInfo)(ICorProfilerInfo15 *, ModuleID moduleId, LPCBYTE *ppBaseLoadAddress,
      ULONG cchName, ULONG *pcchName, WCHAR szName[], AssemblyID *pAssemblyId);
  HRESULT (*GetModuleMetaData)(ICorProfilerInfo15 *, ModuleID moduleId, DWORD dwOpenFlags,
      REFIID riid, void **ppOut);
  HRESULT (*GetILFunctionBody)(ICorProfilerInfo15 *, ModuleID moduleId, mdMethodDef methodId,
      LPCBYTE *ppMethodHeader, ULONG *pcbMethodSize);
  HRESULT (*GetILFunctionBodyAllocator)(ICorProfilerInfo15 *, ModuleID moduleId,
      IMethodMalloc **ppMalloc);
  HRESULT (*SetILFunctionBody)(ICorProfilerInfo15 *, ModuleID moduleId, mdMethodDef methodid,
      LPCBYTE pbNewILMethodHeader);
  HRESULT (*GetAppDomainInfo)(ICorProfilerInfo15 *, AppDomainID appDomainId, ULONG cchName,
      ULONG *pcchName, WCHAR szName[], ProcessID *pProcessId);
  HRESULT (*GetAssemblyInfo)(ICorProfilerInfo15 *, AssemblyID assemblyId, ULONG cchName,
      ULONG *pcchName, WCHAR szName[], AppDomainID *pAppDomainId, ModuleID *pModuleId);
  HRESULT (*SetFunctionReJIT)(ICorProfilerInfo15 *, FunctionID functionId);
  HRESULT (*ForceGC)(ICorProfilerInfo15 *);
  HRESULT (*SetILInstrumentedCodeMap)(ICorProfilerInfo15 *, FunctionID functionId, BOOL fStartJit,
      ULONG cILMapEntries, COR_IL_MAP rgILMapEntries[]);
  HRESULT (*GetInprocInspectionInterface)(ICorProfilerInfo15 *, IUnknown **ppicd);
  HRESULT (*GetInprocInspectionIThisThread)(ICorProfilerInfo15 *, IUnknown **ppicd);
  HRESULT (*GetThreadContext)(ICorProfilerInfo15 *, ThreadID threadId, ContextID *pContextId);
  HRESULT (*BeginInprocDebugging)(ICorProfilerInfo15 *, BOOL fThisThreadOnly,
      DWORD *pdwProfilerContext);
  HRESULT (*EndInprocDebugging)(ICorProfilerInfo15 *, DWORD dwProfilerContext);
  HRESULT (*GetILToNativeMapping)(ICorProfilerInfo15 *, FunctionID functionId, ULONG32 cMap,
      ULONG32 *pcMap, COR_DEBUG_IL_TO_NATIVE_MAP map[]);
  // ICorProfilerInfo2: from slot 36
  HRESULT (*DoStackSnapshot)(ICorProfilerInfo15 *, ThreadID thread, StackSnapshotCallback *callback,
      ULONG32 infoFlags, void *clientData, BYTE context[], ULONG32 contextSize);
  HRESULT (*SetEnterLeaveFunctionHooks2)(ICorProfilerInfo15 *, FunctionEnter2 *pFuncEnter,
      FunctionLeave2 *pFuncLeave, FunctionTailcall2 *pFuncTailcall);
  HRESULT (*GetFunctionInfo2)(ICorProfilerInfo15 *, FunctionID funcId, COR_PRF_FRAME_INFO frameInfo,
      ClassID *pClassId, ModuleID *pModuleId, mdToken *pToken, ULONG32 cTypeArgs,
      ULONG32 *pcTypeArgs, ClassID typeArgs[]);
  HRESULT (*GetStringLayout)(ICorProfilerInfo15 *, ULONG *pBufferLengthOffset,
      ULONG *pStringLengthOffset, ULONG *pBufferOffset);
  HRESULT (*GetClassLayout)(ICorProfilerInfo15 *, ClassID classID, COR_FIELD_OFFSET rFieldOffset[],
      ULONG cFieldOffset, ULONG *pcFieldOffset, ULONG *pulClassSize);
  HRESULT (*GetClassIDInfo2)(ICorProfilerInfo15 *, ClassID classId, ModuleID *pModuleId,
      mdTypeDef *pTypeDefToken, ClassID *pParentClassId, ULONG32 cNumTypeArgs,
      ULONG32 *pcNumTypeArgs, ClassID typeArgs[]);
  HRESULT (*GetCodeInfo2)(ICorProfilerInfo15 *, FunctionID functionID, ULONG32 cCodeInfos,
      ULONG32 *pcCodeInfos, COR_PRF_CODE_INFO codeInfos[]);
  HRESULT (*GetClassFromTokenAndTypeArgs)(ICorProfilerInfo15 *, ModuleID moduleID,
      mdTypeDef typeDef, ULONG32 cTypeArgs, ClassID typeArgs[], ClassID *pClassID);
  HRESULT (*GetFunctionFromTokenAndTypeArgs)(ICorProfilerInfo15 *, ModuleID moduleID,
      mdMethodDef funcDef, ClassID classId, ULONG32 cTypeArgs, ClassID typeArgs[],
      FunctionID *pFunctionID);
  HRESULT (*EnumModuleFrozenObjects)(ICorProfilerInfo15 *, ModuleID moduleID,
      ICorProfilerObjectEnum **ppEnum);
  HRESULT (*GetArrayObjectInfo)(ICorProfilerInfo15 *, ObjectID objectId, ULONG32 cDimensions,
      ULONG32 pDimensionSizes[], int pDimensionLowerBounds[], BYTE **ppData);
  HRESULT (*GetBoxClassLayout)(ICorProfilerInfo15 *, ClassID classId, ULONG32 *pBufferOffset);
  HRESULT (*GetThreadAppDomain)(ICorProfilerInfo15 *, ThreadID threadId, AppDomainID *pAppDomainId);
  HRESULT (*GetRVAStaticAddress)(ICorProfilerInfo15 *, ClassID classId, mdFieldDef fieldToken,
      void **ppAddress);
  HRESULT (*GetAppDomainStaticAddress)(ICorProfilerInfo15 *, ClassID classId, mdFieldDef fieldToken,
      AppDomainID appDomainId, void **ppAddress);
  HRESULT (*GetThreadStaticAddress)(ICorProfilerInfo15 *, ClassID classId, mdFieldDef fieldToken,
      ThreadID threadId, void **ppAddress);
  HRESULT (*GetContextStaticAddress)(ICorProfilerInfo15 *, ClassID classId, mdFieldDef fieldToken,
      ContextID contextId, void **ppAddress);
  HRESULT (*GetStaticFieldInfo)(ICorProfilerInfo15 *, ClassID classId, mdFieldDef fieldToken,
      COR_PRF_STATIC_TYPE *pFieldInfo);
  HRESULT (*GetGenerationBounds)(ICorProfilerInfo15 *, ULONG cObjectRanges, ULONG *pcObjectRanges,
      COR_PRF_GC_GENERATION_RANGE ranges[]);
  HRESULT (*GetObjectGeneration)(ICorProfilerInfo15 *, ObjectID objectId,
      COR_PRF_GC_GENERATION_RANGE *range);
  HRESULT (*GetNotifiedExceptionClauseInfo)(ICorProfilerInfo15 *, COR_PRF_EX_CLAUSE_INFO *pinfo);
  // ICorProfilerInfo3: from slot 57
  HRESULT (*EnumJITedFunctions)(ICorProfilerInfo15 *, ICorProfilerFunctionEnum **ppEnum);
  HRESULT (*RequestProfilerDetach)(ICorProfilerInfo15 *, DWORD dwExpectedCompletionMilliseconds);
  HRESULT (*SetFunctionIDMapper2)(ICorProfilerInfo15 *, FunctionIDMapper2 *pFunc, void *clientData);
  HRESULT (*GetStringLayout2)(ICorProfilerInfo15 *, ULONG *pStringLengthOffset,
      ULONG *pBufferOffset);
  HRESULT (*SetEnterLeaveFunctionHooks3)(ICorProfilerInfo15 *, FunctionEnter3 *pFuncEnter3,
      FunctionLeave3 *pFuncLeave3, FunctionTailcall3 *pFuncTailcall3);
  HRESULT (*SetEnterLeaveFunctionHooks3WithInfo)(ICorProfilerInfo15 *,
      FunctionEnter3WithInfo *pFuncEnter3WithInfo, FunctionLeave3WithInfo *pFuncLeave3WithInfo,
      FunctionTailcall3WithInfo *pFuncTailcall3WithInfo);
  HRESULT (*GetFunctionEnter3Info)(ICorProfilerInfo15 *, FunctionID functionId,
      COR_PRF_ELT_INFO eltInfo, COR_PRF_FRAME_INFO *pFrameInfo, ULONG *pcbArgumentInfo,
      COR_PRF_FUNCTION_ARGUMENT_INFO *pArgumentInfo);
  HRESULT (*GetFunctionLeave3Info)(ICorProfilerInfo15 *, FunctionID functionId,
      COR_PRF_ELT_INFO eltInfo, COR_PRF_FRAME_INFO *pFrameInfo,
      COR_PRF_FUNCTION_ARGUMENT_RANGE *pRetvalRange);
  HRESULT (*GetFunctionTailcall3Info)(ICorProfilerInfo15 *, FunctionID functionId,
      COR_PRF_ELT_INFO eltInfo, COR_PRF_FRAME_INFO *pFrameInfo);
  HRESULT (*EnumModules)(ICorProfilerInfo15 *, ICorProfilerModuleEnum **ppEnum);
  HRESULT (*GetRuntimeInformation)(ICorProfilerInfo15 *, USHORT *pClrInstanceId,
      COR_PRF_RUNTIME_TYPE *pRuntimeType, USHORT *pMajorVersion, USHORT *pMinorVersion,
      USHORT *pBuildNumber, USHORT *pQFEVersion, ULONG cchVersionString, ULONG *pcchVersionString,
      WCHAR szVersionString[]);
  HRESULT (*GetThreadStaticAddress2)(ICorProfilerInfo15 *, ClassID classId, mdFieldDef fieldToken,
      AppDomainID appDomainId, ThreadID threadId, void **ppAddress);
  HRESULT (*GetAppDomainsContainingModule)(ICorProfilerInfo15 *, ModuleID moduleId,
      ULONG32 cAppDomainIds, ULONG32 *pcAppDomainIds, AppDomainID appDomainIds[]);
  HRESULT (*GetModuleInfo2)(ICorProfilerInfo15 *, ModuleID moduleId, LPCBYTE *ppBaseLoadAddress,
      ULONG cchName, ULONG *pcchName, WCHAR szName[], AssemblyID *pAssemblyId,
      DWORD *pdwModuleFlags);
  // ICorProfilerInfo4: from slot 71
  HRESULT (*EnumThreads)(ICorProfilerInfo15 *, ICorProfilerThreadEnum **ppEnum);
  HRESULT (*InitializeCurrentThread)(ICorProfilerInfo15 *);
  HRESULT (*RequestReJIT)(ICorProfilerInfo15 *, ULONG cFunctions, ModuleID moduleIds[],
      mdMethodDef methodIds[]);
  HRESULT (*RequestRevert)(ICorProfilerInfo15 *, ULONG cFunctions, ModuleID moduleIds[],
      mdMethodDef methodIds[], HRESULT status[]);
  HRESULT (*GetCodeInfo3)(ICorProfilerInfo15 *, FunctionID functionID, ReJITID reJitId,
      ULONG32 cCodeInfos, ULONG32 *pcCodeInfos, COR_PRF_CODE_INFO codeInfos[]);
  HRESULT (*GetFunctionFromIP2)(ICorProfilerInfo15 *, LPCBYTE ip, FunctionID *pFunctionId,
      ReJITID *pReJitId);
  HRESULT (*GetReJITIDs)(ICorProfilerInfo15 *, FunctionID functionId, ULONG cReJitIds,
      ULONG *pcReJitIds, ReJITID reJitIds[]);
  HRESULT (*GetILToNativeMapping2)(ICorProfilerInfo15 *, FunctionID functionId, ReJITID reJitId,
      ULONG32 cMap, ULONG32 *pcMap, COR_DEBUG_IL_TO_NATIVE_MAP map[]);
  HRESULT (*EnumJITedFunctions2)(ICorProfilerInfo15 *, ICorProfilerFunctionEnum **ppEnum);
  HRESULT (*GetObjectSize2)(ICorProfilerInfo15 *, ObjectID objectId, SIZE_T *pcSize);
  // ICorProfilerInfo5: from slot 81
  HRESULT (*GetEventMask2)(ICorProfilerInfo15 *, DWORD *pdwEventsLow, DWORD *pdwEventsHigh);
  HRESULT (*SetEventMask2)(ICorProfilerInfo15 *, DWORD dwEventsLow, DWORD dwEventsHigh);
  // ICorProfilerInfo6: from slot 83
  HRESULT (*EnumNgenModuleMethodsInliningThisMethod)(ICorProfilerInfo15 *,
      ModuleID inlinersModuleId, ModuleID inlineeModuleId, mdMethodDef inlineeMethodId,
      BOOL *incompleteData, ICorProfilerMethodEnum **ppEnum);
  // ICorProfilerInfo7: from slot 84
  HRESULT (*ApplyMetaData)(ICorProfilerInfo15 *, ModuleID moduleId);
  HRESULT (*GetInMemorySymbolsLength)(ICorProfilerInfo15 *, ModuleID moduleId,
      DWORD *pCountSymbolBytes);
  HRESULT (*ReadInMemorySymbols)(ICorProfilerInfo15 *, ModuleID moduleId, DWORD symbolsReadOffset,
      BYTE *pSymbolBytes, DWORD countSymbolBytes, DWORD *pCountSymbolBytesRead);
  // ICorProfilerInfo8: from slot 87
  HRESULT (*IsFunctionDynamic)(ICorProfilerInfo15 *, FunctionID functionId, BOOL *isDynamic);
  HRESULT (*GetFunctionFromIP3)(ICorProfilerInfo15 *, LPCBYTE ip, FunctionID *functionId,
      ReJITID *pReJitId);
  HRESULT (*GetDynamicFunctionInfo)(ICorProfilerInfo15 *, FunctionID functionId, ModuleID *moduleId,
      PCCOR_SIGNATURE *ppvSig, ULONG *pbSig, ULONG cchName, ULONG *pcchName, WCHAR wszName[]);
  // ICorProfilerInfo9: from slot 90
  HRESULT (*GetNativeCodeStartAddresses)(ICorProfilerInfo15 *, FunctionID functionID,
      ReJITID reJitId, ULONG32 cCodeStartAddresses, ULONG32 *pcCodeStartAddresses,
      UINT_PTR codeStartAddresses[]);
  HRESULT (*GetILToNativeMapping3)(ICorProfilerInfo15 *, UINT_PTR pNativeCodeStart, ULONG32 cMap,
      ULONG32 *pcMap, COR_DEBUG_IL_TO_NATIVE_MAP map[]);
  HRESULT (*GetCodeInfo4)(ICorProfilerInfo15 *, UINT_PTR pNativeCodeStart, ULONG32 cCodeInfos,
      ULONG32 *pcCodeInfos, COR_PRF_CODE_INFO codeInfos[]);
  // ICorProfilerInfo10: from slot 93
  HRESULT (*EnumerateObjectReferences)(ICorProfilerInfo15 *, ObjectID objectId,
      ObjectReferenceCallback *callback, void *clientData);
  HRESULT (*IsFrozenObject)(ICorProfilerInfo15 *, ObjectID objectId, BOOL *pbFrozen);
  HRESULT (*GetLOHObjectSizeThreshold)(ICorProfilerInfo15 *, DWORD *pThreshold);
  HRESULT (*RequestReJITWithInliners)(ICorProfilerInfo15 *, DWORD dwRejitFlags, ULONG cFunctions,
      ModuleID moduleIds[], mdMethodDef methodIds[]);
  HRESULT (*SuspendRuntime)(ICorProfilerInfo15 *);
  HRESULT (*ResumeRuntime)(ICorProfilerInfo15 *);
  // ICorProfilerInfo11: from slot 99
  HRESULT (*GetEnvironmentVariable)(ICorProfilerInfo15 *, const WCHAR *szName, ULONG cchValue,
      ULONG *pcchValue, WCHAR szValue[]);
  HRESULT (*SetEnvironmentVariable)(ICorProfilerInfo15 *, const WCHAR *szName,
      const WCHAR *szValue);
  // ICorProfilerInfo12: from slot 101
  HRESULT (*EventPipeStartSession)(ICorProfilerInfo15 *, UINT32 cProviderConfigs,
      COR_PRF_EVENTPIPE_PROVIDER_CONFIG pProviderConfigs[], BOOL requestRundown,
      EVENTPIPE_SESSION *pSession);
  HRESULT (*EventPipeAddProviderToSession)(ICorProfilerInfo15 *, EVENTPIPE_SESSION session,
      COR_PRF_EVENTPIPE_PROVIDER_CONFIG providerConfig);
  HRESULT (*EventPipeStopSession)(ICorProfilerInfo15 *, EVENTPIPE_SESSION session);
  HRESULT (*EventPipeCreateProvider)(ICorProfilerInfo15 *, const WCHAR *providerName,
      EVENTPIPE_PROVIDER *pProvider);
  HRESULT (*EventPipeGetProviderInfo)(ICorProfilerInfo15 *, EVENTPIPE_PROVIDER provider,
      ULONG cchName, ULONG *pcchName, WCHAR providerName[]);
  HRESULT (*EventPipeDefineEvent)(ICorProfilerInfo15 *, EVENTPIPE_PROVIDER provider,
      const WCHAR *eventName, UINT32 eventID, UINT64 keywords, UINT32 eventVersion, UINT32 level,
      UINT8 opcode, BOOL needStack, UINT32 cParamDescs, COR_PRF_EVENTPIPE_PARAM_DESC pParamDescs[],
      EVENTPIPE_EVENT *pEvent);
  HRESULT (*EventPipeWriteEvent)(ICorProfilerInfo15 *, EVENTPIPE_EVENT event, UINT32 cData,
      COR_PRF_EVENT_DATA data[], LPCGUID pActivityId, LPCGUID pRelatedActivityId);
  // ICorProfilerInfo13: from slot 108
  HRESULT (*CreateHandle)(ICorProfilerInfo15 *, ObjectID object, COR_PRF_HANDLE_TYPE type,
      ObjectHandleID *pHandle);
  HRESULT (*DestroyHandle)(ICorProfilerInfo15 *, ObjectHandleID handle);
  HRESULT (*GetObjectIDFromHandle)(ICorProfilerInfo15 *, ObjectHandleID handle, ObjectID *pObject);
  // ICorProfilerInfo14: from slot 111
  HRESULT (*EnumerateNonGCObjects)(ICorProfilerInfo15 *, ICorProfilerObjectEnum **ppEnum);
  HRESULT (*GetNonGCHeapBounds)(ICorProfilerInfo15 *, ULONG cObjectRanges, ULONG *pcObjectRanges,
      COR_PRF_NONGC_HEAP_RANGE ranges[]);
  HRESULT (*EventPipeCreateProvider2)(ICorProfilerInfo15 *, const WCHAR *providerName,
      EventPipeProviderCallback *pCallback, EVENTPIPE_PROVIDER *pProvider);
  // ICorProfilerInfo15: from slot 114
  HRESULT (*EnumerateGCHeapObjects)(ICorProfilerInfo15 *, ObjectCallback *callback,
      void *callbackState);
} ICorProfilerInfo15Vtbl;
// clang-format on
struct ICorProfilerInfo15 {
  const ICorProfilerInfo15Vtbl *lpVtbl;
};

// ---- Slot numbers: the first of each interface, and the ends ----
#define CLRSNAP_SLOT(vtbl, name, slot) CLRSNAP_ASSERT(offsetof(vtbl, name) == (slot)*8, #name)
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, Initialize, 3);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, ThreadNameChanged, 72);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, InitializeForAttach, 80);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, ReJITCompilationStarted, 83);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, ConditionalWeakTableElementReferences, 89);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, GetAssemblyReferences, 90);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, ModuleInMemorySymbolsUpdated, 91);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, DynamicMethodJITCompilationStarted, 92);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, DynamicMethodUnloaded, 94);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, EventPipeEventDelivered, 95);
CLRSNAP_SLOT(ICorProfilerCallback11Vtbl, LoadAsNotificationOnly, 97);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, GetClassFromObject, 3);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, DoStackSnapshot, 36);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, EnumJITedFunctions, 57);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, EnumThreads, 71);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, GetEventMask2, 81);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, EnumNgenModuleMethodsInliningThisMethod, 83);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, ApplyMetaData, 84);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, IsFunctionDynamic, 87);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, GetNativeCodeStartAddresses, 90);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, EnumerateObjectReferences, 93);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, GetEnvironmentVariable, 99);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, EventPipeStartSession, 101);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, CreateHandle, 108);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, EnumerateNonGCObjects, 111);
CLRSNAP_SLOT(ICorProfilerInfo15Vtbl, EnumerateGCHeapObjects, 114);
CLRSNAP_ASSERT(sizeof(ICorProfilerCallback11Vtbl) == 98 * 8, "98 slots");
CLRSNAP_ASSERT(sizeof(ICorProfilerInfo15Vtbl) == 115 * 8, "115 slots");
#undef CLRSNAP_SLOT

#endif
