import Base
import Crypto
import HTTPServer

/// The parameters of a request to the token endpoint.
///
/// Each can be sent at most once. One without a value counts as absent, and unknown ones are ignored (RFC 6749, section
/// 3.2).
struct TokenEndpointForm: Sendable {
    private static let contentType = "application/x-www-form-urlencoded"
    private static let maximumFields = 32
    private static let maximumLength = 4096
    /// The parameters of RFC 8693 that can repeat.
    private static let repeatable: Set<String> = ["audience", "resource"]
    private static let known: Set<String> = repeatable.union([
        "grant_type", "refresh_token", "scope", "client_id", "client_secret", "subject_token", "subject_token_type",
        "requested_token_type", "actor_token", "actor_token_type", "connection",
    ])

    private let values: [String: String]

    init(_ request: ServerRequest) throws(ServiceError) {
        guard request.query.isEmpty else { throw .invalidRequest("parameters belong in the body, not in the URL") }
        guard request.mediaType == Self.contentType else {
            throw .invalidRequest("the Content-Type must be \(Self.contentType)")
        }
        // Before the fields are decoded, so that a body of separators costs nothing.
        guard request.body.count(where: { $0 == UInt8(ascii: "&") }) < Self.maximumFields else {
            throw .invalidRequest("the body must not have more than \(Self.maximumFields) parameters")
        }
        var values: [String: String] = [:]
        for (name, value) in request.form where Self.known.contains(name) {
            let limit = name == "subject_token" ? TokenSigner.maximumTokenLength : Self.maximumLength
            guard Self.isText(value, limit: limit) else {
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
        guard let value = values[name], !value.isEmpty else { return nil }
        return value
    }

    /// Accepts text whose decoding lost nothing: invalid UTF-8 is decoded as U+FFFD, and would name another user.
    private static func isText(_ text: String, limit: Int) -> Bool {
        guard text.utf8.count <= limit else { return false }
        return !text.unicodeScalars.contains { $0 == "\u{fffd}" || $0.properties.generalCategory == .control }
    }
}

/// The name and the credential with which a service authenticates itself at the token endpoint.
struct TokenEndpointLogin: Sendable {
    let name: String
    let credential: String
}

extension TokenEndpointForm {
    /// Returns the login from the form or from the `Authorization` header (RFC 6749, section 2.3.1), or `nil` if it is
    /// not complete.
    ///
    /// A request with both is refused, because choosing one would be arbitrary.
    func login(_ request: ServerRequest) throws(ServiceError) -> TokenEndpointLogin? {
        let clientID = self["client_id"]
        let secret = self["client_secret"]
        guard request.header("Authorization") != nil else {
            guard let clientID, let secret else { return nil }
            return TokenEndpointLogin(name: clientID, credential: secret)
        }
        guard secret == nil else {
            throw .invalidRequest("authenticate by HTTP Basic or by client_secret, not by both")
        }
        guard case .present(let name, let password) = BasicCredentials(of: request) else { return nil }
        if let clientID, !clientID.utf8.elementsEqual(name.utf8) {
            throw .invalidRequest("client_id differs from the name in the Authorization header")
        }
        return TokenEndpointLogin(name: name, credential: password)
    }
}
