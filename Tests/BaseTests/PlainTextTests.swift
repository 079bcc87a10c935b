import Testing

@testable import Base

@Suite("Text that is checked in chunks")
struct PlainTextTests {
    @Test("ends at the first byte that JSON escapes, wherever that is")
    func end() {
        for byte in UInt8.min...UInt8.max {
            for count in 1...40 {
                for position in 0..<count {
                    var bytes = [UInt8](repeating: UInt8(ascii: "a"), count: count)
                    bytes[position] = byte
                    let end = bytes.span.bytes.endOfPlainText(from: 0)
                    let expected = byte.isPlainInJSON ? count : position
                    if end != expected { Issue.record("byte \(byte) at \(position) of \(count): \(end)") }
                }
            }
        }
    }

    @Test("ends at the first of several such bytes, from any start")
    func neighbours() {
        // Each is a limit of one of the checks, or next to one.
        let limits: [UInt8] = [0, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x5b, 0x5c, 0x5d, 0x7e, 0x7f, 0x80, 0xff]
        let random = SeededRandom(seed: 36)
        for _ in 0..<20_000 {
            let count = Int(random.nextBits() % 40)
            let bytes = (0..<count).map { _ in
                random.nextBits() % 4 > 0 ? UInt8(ascii: "a") : limits[Int(random.nextBits() % 13)]
            }
            let start = count == 0 ? 0 : Int(random.nextBits() % UInt64(count))
            let end = bytes.span.bytes.endOfPlainText(from: start)
            let expected = bytes[start...].firstIndex { !$0.isPlainInJSON } ?? count
            if end != expected { Issue.record("\(bytes) from \(start): \(end)") }
            let isVisible = bytes.span.bytes.isVisibleASCII
            if isVisible != bytes.allSatisfy({ (0x21...0x7e).contains($0) }) { Issue.record("\(bytes): \(isVisible)") }
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
