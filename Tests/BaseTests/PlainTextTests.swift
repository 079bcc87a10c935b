import Testing

@testable import Base

@Suite("Text that is checked in chunks")
struct PlainTextTests {
    @Test("ends at the first byte that JSON escapes, wherever that is", arguments: [0, 3])
    func end(start: Int) {
        for byte in UInt8.min...UInt8.max {
            for count in 0...40 {
                for position in 0..<count {
                    var bytes = [UInt8](repeating: UInt8(ascii: "a"), count: count)
                    bytes[position] = byte
                    let isPassed = byte.isPlainInJSON || position < start
                    let expected = isPassed ? max(count, start) : position
                    let end = bytes.span.bytes.endOfPlainText(from: start)
                    if end != expected { Issue.record("byte \(byte) at \(position) of \(count): \(end)") }
                }
            }
        }
    }

    @Test("is visible if each byte is")
    func visible() {
        for byte in UInt8.min...UInt8.max {
            for count in 1...40 {
                for position in 0..<count {
                    var bytes = [UInt8](repeating: 0x7e, count: count)
                    bytes[position] = byte
                    let isVisible = bytes.span.bytes.isVisibleASCII
                    let expected = (0x21...0x7e).contains(byte)
                    if isVisible != expected { Issue.record("byte \(byte) at \(position) of \(count): \(isVisible)") }
                }
            }
        }
        let none: [UInt8] = []
        let isVisible = none.span.bytes.isVisibleASCII
        #expect(isVisible)
    }

    @Test("is printable ASCII without quotation marks and backslashes")
    func plain() {
        let printable = (UInt8(ascii: " ")...UInt8(ascii: "~")).filter {
            $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
        }
        #expect((UInt8.min...UInt8.max).filter(\.isPlainInJSON) == printable)
    }
}
