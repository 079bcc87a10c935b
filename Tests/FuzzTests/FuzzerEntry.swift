import Glibc

/// The target that `FUZZ_TARGET` names.
private let target: FuzzTarget = {
    let name = getenv("FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = FuzzTarget.named(name) else {
        fatalError("FUZZ_TARGET must be one of \(FuzzTarget.all.map(\.name).joined(separator: ", "))")
    }
    return target
}()

/// The function that libFuzzer calls with every input (https://llvm.org/docs/LibFuzzer.html#fuzz-target).
@_cdecl("LLVMFuzzerTestOneInput")
func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    target.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}
