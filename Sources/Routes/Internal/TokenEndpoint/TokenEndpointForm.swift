import HTTPServer

/// The parameters of a request to the token endpoint.
///
/// Each may be sent once. One without a value counts as absent, and unknown ones are ignored (RFC 6749, section 3.2).
struct TokenEndpointForm: Sendable {
    private static let contentType = "application/x-www-form-urlencoded"
    private static let maxFields = 32
    private static let maxLength = 4096
    /// The parameters of RFC 8693 that may repeat.
    private static let repeatable: Set<String> = ["audience", "resource"]
    private static let known: Set<String> = repeatable.union([
        "grant_type", "refresh_token", "scope", "client_id", "client_secret", "subject_token", "subject_token_type",
        "requested_token_type", "actor_token", "actor_token_type",
    ])

    private let values: [String: String]

    init(_ request: ServerRequest) throws(VendingError) {
        guard request.query.isEmpty else { throw .invalidRequest("parameters belong in the body, not in the URL") }
        guard request.mediaType == Self.contentType else {
            throw .invalidRequest("the Content-Type must be \(Self.contentType)")
        }
        // Before the fields are decoded, so that a body of separators costs nothing.
        guard request.body.count(where: { $0 == UInt8(ascii: "&") }) < Self.maxFields else {
            throw .invalidRequest("the body must not have more than \(Self.maxFields) parameters")
        }
        var values: [String: String] = [:]
        for (name, value) in request.form where Self.known.contains(name) {
            guard Self.isText(value) else {
                throw .invalidRequest("\(name) is too long, is not UTF-8, or contains a control character")
            }
            let isFirst = values.updateValue(value, forKey: name) == nil
            guard isFirst || Self.repeatable.contains(name) else {
                throw .invalidRequest("\(name) must not be sent twice")
            }
        }
        self.values = values
    }

    subscript(name: String) -> String? {
        values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Accepts text whose decoding lost nothing: invalid UTF-8 is decoded as U+FFFD, and would name another user.
    private static func isText(_ text: String) -> Bool {
        text.utf8.count <= maxLength
            && !text.unicodeScalars.contains { $0 == "\u{fffd}" || $0.properties.generalCategory == .control }
    }
}
