// What libFuzzer calls, in the program that Tools/fuzz.sh links; the entry comes in ROSTRUM_FUZZ_ENTRY.

import Glibc

private let entry: FuzzEntry = {
    guard let name = unsafe getenv("ROSTRUM_FUZZ_ENTRY").map({ unsafe String(cString: $0) }),
        let entry = FuzzEntry.all.first(where: { $0.name == name })
    else { fatalError("ROSTRUM_FUZZ_ENTRY must be one of \(FuzzEntry.all.map(\.name))") }
    return entry
}()

@_cdecl("LLVMFuzzerTestOneInput")
func fuzzOne(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    entry.run(unsafe Span(_unsafeStart: start, count: count))
    return 0
}
