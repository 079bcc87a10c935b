private import Glibc

/// Memory for bytes, from the C library.
///
/// Swift's own allocation of raw memory asks for an alignment, which takes three times as many instructions.
enum ByteMemory {
    static func allocate(_ count: Int) -> UnsafeMutableRawBufferPointer {
        guard count > 0 else { return unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0) }
        guard let start = unsafe malloc(count) else { fatalError("out of memory") }
        return unsafe UnsafeMutableRawBufferPointer(start: start, count: count)
    }

    static func free(_ memory: UnsafeMutableRawBufferPointer) {
        unsafe Glibc.free(memory.baseAddress)
    }
}
