// What the examples use of swift-http-types, with its declarations, and with bodies for the tests.

/// A field of a head.
package enum HTTPField {
    /// A field's name, which has no case.
    package struct Name: Hashable, Sendable {
        package let canonicalName: String

        package init?(_ name: String) {
            guard !name.isEmpty else { return nil }
            canonicalName = name.lowercased()
        }

        private init(canonicalName: String) { self.canonicalName = canonicalName }

        package static let retryAfter = Name(canonicalName: "retry-after")
    }
}

/// The fields of a head.
package struct HTTPFields: ExpressibleByDictionaryLiteral, Sendable {
    private var fields: [HTTPField.Name: String]

    package init(dictionaryLiteral elements: (HTTPField.Name, String)...) {
        fields = Dictionary(elements) { first, _ in first }
    }

    package subscript(name: HTTPField.Name) -> String? {
        get { fields[name] }
        set { fields[name] = newValue }
    }
}

/// A response's head.
package enum HTTPResponse {
    /// A response's status.
    package struct Status: Hashable, Sendable {
        package let code: Int

        package static let ok = Status(code: 200)
        package static let noContent = Status(code: 204)
        package static let badRequest = Status(code: 400)
        package static let unauthorized = Status(code: 401)
        package static let conflict = Status(code: 409)
        package static let serviceUnavailable = Status(code: 503)
    }
}
