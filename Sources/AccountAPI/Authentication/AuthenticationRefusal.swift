internal import HTTPServer

/// The reason why a caller is refused; each family of routes answers it in its own form.
enum AuthenticationRefusal: Error, Hashable, Sendable {
    /// The request does not have a token.
    case missing
    /// The token, its session or its user is invalid; the answer does not say which.
    case invalid
    /// The token was valid before.
    case expired
    /// The user was deleted, but a former token may still be in use.
    case deleted
    case inactive
}

extension ServerRequest {
    /// Returns the token that the request bears.
    func bearerToken() throws(AuthenticationRefusal) -> String {
        switch BearerToken(of: self) {
        case .missing: throw .missing
        case .malformed: throw .invalid
        case .present(let token): return token
        }
    }
}
