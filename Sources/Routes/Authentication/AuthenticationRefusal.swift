internal import HTTPServer

/// The reason why a caller is refused; each family of routes has its own response to it.
enum AuthenticationRefusal: Error, Hashable, Sendable {
    /// The request does not have a token.
    case missing
    /// The token, its session or its user is invalid; the response does not say which.
    case invalid
    /// The token has expired.
    case expired
    /// The user was deleted, and the token was issued before.
    case deleted
    /// The backend has disabled the user.
    case inactive
}

extension ServerRequest {
    /// Returns the bearer token of the request.
    func bearerToken() throws(AuthenticationRefusal) -> String {
        switch BearerToken(of: self) {
        case .missing: throw .missing
        case .malformed: throw .invalid
        case .present(let token): return token
        }
    }
}
