/// A recursive-descent parser over bytes: strict about the grammar, bounded in depth.
struct JSONParser {
    let bytes: [UInt8]
    var position = 0

    mutating func parseDocument() throws(FormatError) -> JSONValue {
        skipByteOrderMark()
        let value = try parseValue(depth: 0)
        skipSpace()
        guard position == bytes.count else { throw failure("something follows the value") }
        return value
    }

    /// Parses the members of the object at the start of the text, up to its end or the first error in its structure.
    mutating func parsePartialObject() -> [String: JSONValue]? {
        skipByteOrderMark()
        skipSpace()
        guard take("{") else { return nil }
        skipSpace()
        guard !take("}") else { return [:] }
        var members: [String: JSONValue] = [:]
        do throws(FormatError) {
            repeat {
                let name = try parseName()
                let value = try parseValueOrSkip()
                if case .number = value, nextByte == nil { break }
                if let value { members[name] = value }
                skipSpace()
            } while take(",")
        } catch {
            return members
        }
        return members
    }

    /// Parses a member's value, or returns `nil` after a value that cannot be read.
    private mutating func parseValueOrSkip() throws(FormatError) -> JSONValue? {
        let start = position
        do throws(FormatError) {
            return try parseValue(depth: 1)
        } catch {
            position = start
            try skipValue()
            return nil
        }
    }

    /// Moves to the end of a value that cannot be read, without recursion.
    private mutating func skipValue() throws(FormatError) {
        skipSpace()
        var closers: [UInt8] = []
        repeat {
            switch nextByte {
            case UInt8(ascii: "{"):
                closers.append(UInt8(ascii: "}"))
                position += 1
            case UInt8(ascii: "["):
                closers.append(UInt8(ascii: "]"))
                position += 1
            case UInt8(ascii: "\""): try skipString()
            case nil: throw failure("the text ends too early")
            case closers.last:
                closers.removeLast()
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): throw failure("a bracket does not match")
            case _ where closers.isEmpty: try skipWord()
            default: position += 1
            }
        } while !closers.isEmpty
    }

    private mutating func skipString() throws(FormatError) {
        position += 1
        while let byte = nextByte {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return
            case UInt8(ascii: "\\"): position += 1
            default: break
            }
        }
        throw failure("a string is not closed")
    }

    /// Moves to the end of a number or a word in a form that JSON does not have, such as `NaN`.
    private mutating func skipWord() throws(FormatError) {
        let start = position
        while let byte = nextByte, isPartOfWord(byte) { position += 1 }
        guard position > start else { throw failure("not a JSON value") }
    }

    private mutating func skipByteOrderMark() {
        let mark: [UInt8] = [0xef, 0xbb, 0xbf]
        if position == 0, bytes.starts(with: mark) { position = mark.count }
    }

    private mutating func parseValue(depth: Int) throws(FormatError) -> JSONValue {
        guard depth < JSONValue.maximumDepth else { throw failure("nested too deeply") }
        skipSpace()
        switch nextByte {
        case UInt8(ascii: "{"): return try parseObject(depth: depth)
        case UInt8(ascii: "["): return try parseArray(depth: depth)
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "t"): return try parseWord("true", as: .bool(true))
        case UInt8(ascii: "f"): return try parseWord("false", as: .bool(false))
        case UInt8(ascii: "n"): return try parseWord("null", as: .null)
        case nil: throw failure("the text ends too early")
        default: return try parseNumber()
        }
    }

    private mutating func parseObject(depth: Int) throws(FormatError) -> JSONValue {
        var members: [String: JSONValue] = [:]
        position += 1
        skipSpace()
        if take("}") { return .object(members) }
        repeat {
            let (name, value) = try parseMember(depth: depth)
            members[name] = value
            skipSpace()
        } while take(",")
        guard take("}") else { throw failure("an object is not closed") }
        return .object(members)
    }

    private mutating func parseMember(depth: Int) throws(FormatError) -> (name: String, value: JSONValue) {
        (try parseName(), try parseValue(depth: depth + 1))
    }

    /// Parses a member's name and the colon after it.
    private mutating func parseName() throws(FormatError) -> String {
        skipSpace()
        guard nextByte == UInt8(ascii: "\"") else { throw failure("a member's name is missing") }
        let name = try parseString()
        skipSpace()
        guard take(":") else { throw failure("a colon is missing") }
        return name
    }

    private mutating func parseArray(depth: Int) throws(FormatError) -> JSONValue {
        var values: [JSONValue] = []
        position += 1
        skipSpace()
        if take("]") { return .array(values) }
        repeat {
            values.append(try parseValue(depth: depth + 1))
            skipSpace()
        } while take(",")
        guard take("]") else { throw failure("an array is not closed") }
        return .array(values)
    }

    private mutating func parseWord(_ word: StaticString, as value: JSONValue) throws(FormatError) -> JSONValue {
        let expected = Array(String(describing: word).utf8)
        guard bytes[position...].starts(with: expected) else {
            if expected.starts(with: bytes[position...]) { position = bytes.count }
            throw failure("not a JSON value")
        }
        position += expected.count
        return value
    }

    private mutating func parseNumber() throws(FormatError) -> JSONValue {
        let start = position
        _ = take("-")
        guard let first = nextByte, isDigit(first) else { throw failure("not a JSON value") }
        skipDigits()
        if first == UInt8(ascii: "0"), position - start > (bytes[start] == first ? 1 : 2) {
            throw failure("a number begins with a zero")
        }
        if take(".") {
            guard let digit = nextByte, isDigit(digit) else { throw failure("a digit is missing") }
            skipDigits()
        }
        if take("e") || take("E") {
            _ = take("+") || take("-")
            guard let digit = nextByte, isDigit(digit) else { throw failure("a digit is missing") }
            skipDigits()
        }
        return .number(String(decoding: bytes[start..<position], as: UTF8.self))
    }

    /// Reads a string, in one piece if it has no escapes.
    private mutating func parseString() throws(FormatError) -> String {
        position += 1
        let start = position
        var end = position
        // Nearly all bytes of a document pass through this loop.
        while end < bytes.count, isPlain(bytes[end]) { end += 1 }
        position = end
        guard nextByte == UInt8(ascii: "\"") else { return try parseEscapedString(from: start) }
        defer { position += 1 }
        return try text(bytes[start..<position])
    }

    /// Continues a string that began at `start` and has no escape so far.
    private mutating func parseEscapedString(from start: Int) throws(FormatError) -> String {
        var content = Array(bytes[start..<position])
        while let byte = nextByte {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                return try text(content[...])
            case UInt8(ascii: "\\"):
                content.append(contentsOf: try parseEscape())
            case 0..<0x20:
                throw failure("a string has a control character")
            default:
                content.append(byte)
            }
        }
        throw failure("a string is not closed")
    }

    private func text(_ content: ArraySlice<UInt8>) throws(FormatError) -> String {
        guard let text = String(validating: content, as: UTF8.self) else { throw failure("a string is not UTF-8") }
        return text
    }

    private mutating func parseEscape() throws(FormatError) -> [UInt8] {
        guard let byte = nextByte else { throw failure("a string is not closed") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0c]
        case UInt8(ascii: "n"): return [0x0a]
        case UInt8(ascii: "r"): return [0x0d]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "u"): return try parseUnicodeEscape()
        default: throw failure("a string has an unknown escape")
        }
    }

    /// Reads the digits of `\uXXXX`, and the second escape of a surrogate pair.
    private mutating func parseUnicodeEscape() throws(FormatError) -> [UInt8] {
        var code = UInt32(try parseFourDigits())
        if (0xd800..<0xdc00).contains(code) {
            guard take("\\"), take("u") else { throw failure("half of a surrogate pair is missing") }
            let low = UInt32(try parseFourDigits())
            guard (0xdc00..<0xe000).contains(low) else { throw failure("half of a surrogate pair is missing") }
            code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw failure("half of a surrogate pair is missing") }
        return Array(String(Character(scalar)).utf8)
    }

    private mutating func parseFourDigits() throws(FormatError) -> UInt16 {
        guard position + 4 <= bytes.count else {
            position = bytes.count
            throw failure("the text ends too early")
        }
        let digits = bytes[position..<position + 4]
        guard digits.allSatisfy(isHexadecimalDigit),
            let code = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw failure("four hexadecimal digits are missing") }
        position += 4
        return code
    }

    private var nextByte: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard nextByte == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = nextByte, isSpace(byte) { position += 1 }
    }

    private mutating func skipDigits() {
        while let byte = nextByte, isDigit(byte) { position += 1 }
    }

    private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 }

    private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private func isHexadecimalDigit(_ byte: UInt8) -> Bool { isDigit(byte) || (0x61...0x66).contains(byte | 0x20) }

    private func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

    private func isPartOfWord(_ byte: UInt8) -> Bool { isDigit(byte) || isLetter(byte) || "+-.".utf8.contains(byte) }

    /// Returns `true` for a byte of a string that stands for itself.
    private func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private func failure(_ problem: String) -> FormatError { FormatError(problem, at: position) }
}
