internal import Crypto

extension ErasedBytes {
    // Each of these is one access to a buffer: Swift checks every access to a class's properties. They return `false`
    // if the bytes would exceed the limit.

    mutating func appendLine(_ line: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + line.count <= limit else { return false }
        unsafe append(line)
        return true
    }

    mutating func appendField(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + name.count + value.count + 4 <= limit else { return false }
        unsafe append(name)
        append(UInt8(ascii: ":"))
        append(UInt8(ascii: " "))
        unsafe endLine(value)
        return true
    }

    mutating func appendStatusLine(_ status: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard count + Self.version.count + status.count + 2 <= limit else { return false }
        append(Self.version)
        unsafe endLine(status)
        return true
    }

    /// Appends as much as fits, because that part can hold a whole token.
    mutating func appendBody(_ bytes: UnsafeRawBufferPointer, limit: Int) -> Bool {
        let kept = min(bytes.count, limit - count)
        unsafe append(UnsafeRawBufferPointer(rebasing: bytes[..<kept]))
        return kept == bytes.count
    }

    private mutating func endLine(_ bytes: UnsafeRawBufferPointer) {
        unsafe append(bytes)
        append(UInt8(ascii: "\r"))
        append(UInt8(ascii: "\n"))
    }

    private static let version = Array("HTTP/2 ".utf8)
}
