import Base
import Crypto

/// The members of an answer in the usual form: one object, whose values are strings without escapes or whole numbers.
///
/// Nearly every answer has this form. It is read in place: the tokens are never copied into strings, which are not
/// wiped, and it costs a tenth of parsing the answer into values. Every other answer is left to `JSONValue`, whose
/// reading is the definition: a test compares both.
struct UnescapedTokenJSON {
    /// The part of the text between the quotes, or the digits.
    enum Member {
        case missing
        case text(Range<Int>)
        case number(Int64)
    }

    private(set) var accessToken = Member.missing
    private(set) var lifetime = Member.missing
    private(set) var type = Member.missing
    private(set) var scope = Member.missing
    private(set) var refreshToken = Member.missing
    private(set) var refreshTokenLifetime = Member.missing
    private(set) var idToken = Member.missing

    /// Returns `nil` for an answer in another form, for an error, and for one that names a member twice.
    init?(_ text: RawSpan) {
        var offset = Self.skipSpace(in: text, from: 0)
        guard Self.has("{", in: text, at: offset) else { return nil }
        repeat {
            offset = Self.skipSpace(in: text, from: offset + 1)
            guard let name = Self.text(in: text, at: offset) else { return nil }
            offset = Self.skipSpace(in: text, from: name.upperBound + 1)
            guard Self.has(":", in: text, at: offset) else { return nil }
            offset = Self.skipSpace(in: text, from: offset + 1)
            let value: Member
            if let string = Self.text(in: text, at: offset) {
                value = .text(string)
                offset = string.upperBound + 1
            } else if let (number, end) = Self.number(in: text, at: offset) {
                value = .number(number)
                offset = end
            } else {
                return nil
            }
            guard set(value, named: text.extracting(name)) else { return nil }
            offset = Self.skipSpace(in: text, from: offset)
        } while Self.has(",", in: text, at: offset)
        guard Self.has("}", in: text, at: offset), Self.skipSpace(in: text, from: offset + 1) == text.byteCount else {
            return nil
        }
    }

    private mutating func set(_ value: Member, named name: RawSpan) -> Bool {
        switch name.byteCount {
        case 5 where name.isEqual(to: "scope"): Self.set(&scope, to: value)
        case 5 where name.isEqual(to: "error"): false
        case 8 where name.isEqual(to: "id_token"): Self.set(&idToken, to: value)
        case 10 where name.isEqual(to: "expires_in"): Self.set(&lifetime, to: value)
        case 10 where name.isEqual(to: "token_type"): Self.set(&type, to: value)
        case 12 where name.isEqual(to: "access_token"): Self.set(&accessToken, to: value)
        case 13 where name.isEqual(to: "refresh_token"): Self.set(&refreshToken, to: value)
        case 24 where name.isEqual(to: "refresh_token_expires_in"): Self.set(&refreshTokenLifetime, to: value)
        // Google sends neither today.
        case 24 where name.isEqual(to: "authorization_expires_in"): false
        case 21 where name.isEqual(to: "refresh_token_timeout"): false
        default: true
        }
    }

    private static func set(_ member: inout Member, to value: Member) -> Bool {
        guard case .missing = member else { return false }
        member = value
        return true
    }

    // MARK: Scanning

    /// Returns the content of a string of printable ASCII characters without escapes.
    private static func text(in text: RawSpan, at start: Int) -> Range<Int>? {
        guard has("\"", in: text, at: start) else { return nil }
        let end = text.endOfPlainText(from: start + 1)
        return has("\"", in: text, at: end) ? start + 1..<end : nil
    }

    /// Returns a whole number without a sign and its end.
    private static func number(in text: RawSpan, at start: Int) -> (Int64, end: Int)? {
        var value: Int64 = 0
        var end = start
        while end < text.byteCount, text.byte(at: end) &- UInt8(ascii: "0") < 10 {
            value = value * 10 + Int64(text.byte(at: end) - UInt8(ascii: "0"))
            end += 1
            guard end - start < 16 else { return nil }
        }
        guard end > start else { return nil }
        let hasLeadingZero = end > start + 1 && text.byte(at: start) == UInt8(ascii: "0")
        return hasLeadingZero ? nil : (value, end)
    }

    private static func skipSpace(in text: RawSpan, from start: Int) -> Int {
        var offset = start
        while offset < text.byteCount {
            switch text.byte(at: offset) {
            case 0x20, 0x0a, 0x0d, 0x09: offset += 1
            default: return offset
            }
        }
        return offset
    }

    private static func has(_ character: Unicode.Scalar, in text: RawSpan, at offset: Int) -> Bool {
        offset < text.byteCount && text.byte(at: offset) == UInt8(ascii: character)
    }
}

extension RawSpan {
    func isEqual(to name: String) -> Bool {
        let expected = name.utf8Span.span
        guard expected.count == byteCount else { return false }
        return expected.indices.allSatisfy { expected[$0] == byte(at: $0) }
    }
}
