package import Base
package import Crypto
internal import GoogleOAuth
internal import Storage

/// The fields of a record.
///
/// A missing field, `null` and an empty string all mean "not known".
///
/// Problems name the field as the record does, and the type of its value, never the value.
package struct RecordFields {
    /// The limit of names, addresses and ids in bytes.
    ///
    /// Longer ones are invalid.
    package static let maximumTextLength = 1024
    private static let maximumScopeLength = 16_384
    private static let maximumLifetime: Int64 = 3_660 * 86_400
    /// The end of the year 9999.
    private static let maximumInstant = 253_402_300_799.0
    private static let timeForms = "a time such as 2026-01-31T12:00:00Z, or a number of seconds since 1970"

    private let members: [String: JSONValue]
    /// The record's own names of fields, where they differ.
    private let names: [String: String]

    package init(members: [String: JSONValue], names: [String: String] = [:]) {
        self.members = members
        self.names = names
    }

    /// The name of a field in messages.
    package func label(_ field: String) -> String {
        names[field].map { "\($0) (\(field))" } ?? field
    }

    package func text(_ field: String, limit: Int = RecordFields.maximumTextLength) throws(InputError) -> String? {
        switch value(field) {
        case nil, .null: return nil
        case .string(let text):
            guard text.utf8.count <= limit else {
                throw InputError("\(label(field)) has \(text.utf8.count) bytes; at most \(limit) are allowed")
            }
            return text.isEmpty ? nil : text
        default: throw problem(field, needs: "a string")
        }
    }

    /// Returns an identifier, which some systems write as a number.
    package func identifier(_ field: String) throws(InputError) -> String? {
        switch value(field) {
        case .number(let digits):
            guard digits.utf8.count <= 30, digits.isDecimalNumber else {
                throw InputError("\(label(field)) is a number with a sign or a fraction; an id has digits only")
            }
            return digits
        case nil, .null, .string: return try text(field)
        default: throw problem(field, needs: "a string or a whole number")
        }
    }

    package func token(_ field: String) throws(InputError) -> Secret? {
        let token = Token.optional(value(field))
        guard token.isWellFormed else {
            throw problem(field, needs: "a token: visible ASCII of at most \(Token.maximumLength) bytes")
        }
        return token.value
    }

    /// Returns an instant from ISO 8601 or seconds since 1970.
    package func instant(_ field: String) throws(InputError) -> Timestamp? {
        try instant(field, orElse: { _ in nil }, needs: Self.timeForms)
    }

    /// Returns an instant.
    ///
    /// A date without a time means its first instant in UTC.
    package func day(_ field: String) throws(InputError) -> Timestamp? {
        try instant(
            field,
            orElse: { Timestamp(iso8601Date: $0) },
            needs: "a date such as 2026-01-31, \(Self.timeForms)"
        )
    }

    /// Returns the time since midnight if the field holds a time of day without a date.
    package func timeOfDay(_ field: String) -> Duration? {
        value(field)?.string.flatMap { Timestamp.timeOfDay($0) }
    }

    /// `true` if the field holds a date without a time.
    package func isDate(_ field: String) -> Bool {
        value(field)?.string.flatMap { Timestamp(iso8601Date: $0) } != nil
    }

    private func instant(
        _ field: String,
        orElse read: (String) -> Timestamp?,
        needs forms: String
    ) throws(InputError) -> Timestamp? {
        switch value(field) {
        case nil, .null, .string(""): return nil
        case .string(let text):
            guard let instant = Timestamp(iso8601: text) ?? read(text) else { throw problem(field, needs: forms) }
            return instant
        case .number(let digits):
            guard let seconds = Double(digits), (0...Self.maximumInstant).contains(seconds) else {
                throw InputError(
                    "\(label(field)) is a number that is out of range; it must count the seconds since 1970"
                )
            }
            return Timestamp(milliseconds: Int64((seconds * 1000).rounded()))
        default: throw problem(field, needs: forms)
        }
    }

    /// Returns a number of seconds, from a number or a string of digits.
    func span(_ field: String) throws(InputError) -> Duration? {
        let digits: String
        switch value(field) {
        case nil, .null, .string(""): return nil
        case .number(let text), .string(let text): digits = text
        default: throw problem(field, needs: "a number of seconds")
        }
        guard let seconds = Double(digits), seconds.isFinite else { throw problem(field, needs: "a number of seconds") }
        guard (0...Double(Self.maximumLifetime)).contains(seconds) else {
            throw InputError("\(label(field)) is out of range; at most ten years of seconds are allowed")
        }
        return .seconds(Int64(seconds))
    }

    package func boolean(_ field: String) throws(InputError) -> Bool? {
        switch value(field) {
        case nil, .null, .string(""): return nil
        case .bool(let value): return value
        case .string("true"), .string("True"): return true
        case .string("false"), .string("False"): return false
        default: throw problem(field, needs: "true or false")
        }
    }

    /// Returns the labels of a connection.
    func labels(_ field: String) throws(InputError) -> ConnectionLabels? {
        guard let value = value(field), value != .null else { return nil }
        guard let labels = ConnectionLabels(value) else {
            throw InputError("\(label(field)) \(ConnectionLabels.rule)")
        }
        return labels
    }

    /// Returns scopes separated by spaces, from an array or from a string with spaces or commas.
    ///
    /// The former backend's functions write Python's `str(None)` where no scope is known.
    func scopes(_ field: String) throws(InputError) -> String? {
        var words: [Substring] = []
        switch value(field) {
        case nil, .null: return nil
        case .string(let text):
            words = text.split { $0 == " " || $0 == "," }
        case .array(let values):
            for value in values {
                guard let text = value.string else { throw problem(field, needs: "an array of strings only") }
                words += text.split { $0 == " " || $0 == "," }
            }
        default: throw problem(field, needs: "a string or an array of strings")
        }
        let scope = words.joined(separator: " ")
        guard scope.utf8.allSatisfy({ (0x20...0x7e).contains($0) }), scope.utf8.count <= Self.maximumScopeLength else {
            throw problem(field, needs: "a list of scopes: visible ASCII of at most \(Self.maximumScopeLength) bytes")
        }
        return ["", "None"].contains(scope) ? nil : scope
    }

    /// Checks a user id by the rules of the command line, so that every stored user can be named there.
    package static func checked(userID: String?) throws(InputError) -> String {
        guard let userID, !userID.isEmpty else { throw InputError("user_id is missing") }
        guard userID.utf8.count <= RecordFields.maximumTextLength else {
            throw InputError(
                "user_id has \(userID.utf8.count) bytes; at most \(RecordFields.maximumTextLength) are allowed"
            )
        }
        guard !userID.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw InputError("user_id contains control characters")
        }
        guard !userID.holdsCredential else {
            throw InputError("user_id looks like a token or a secret (not shown)")
        }
        return userID
    }

    private func value(_ field: String) -> JSONValue? { members[names[field] ?? field] }

    /// Returns a problem that states the value's type and the required one.
    private func problem(_ field: String, needs needed: String) -> InputError {
        let type =
            switch value(field) {
            case nil, .null: "null"
            case .bool: "true or false"
            case .number: "a number"
            case .string: "a string in another form"
            case .array: "an array"
            case .object: "an object"
            }
        return InputError("\(label(field)) is \(type); it must be \(needed)")
    }
}
