private import Crypto

/// Memory into which connections read, one after the other.
///
/// It is wiped after each use.
@safe
final class InputBuffer {
    let bytes: UnsafeMutableRawBufferPointer

    init() {
        unsafe bytes = .allocate(byteCount: 16_384, alignment: 16)
    }

    deinit {
        unsafe bytes.deallocate()
    }

    /// Calls the closure with the bytes that were read, then wipes them.
    func use(_ count: Int, _ body: (RawSpan) -> Void) {
        let used = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
        defer { unsafe ErasedBytes.wipe(used) }
        body(unsafe UnsafeRawBufferPointer(used).bytes)
    }
}
