import HTTPServer

/// The name and the credential with which a service authenticates itself at the token endpoint
/// (RFC 6749, section 2.3.1).
struct ServiceLogin: Sendable {
    let name: String
    let credential: String

    /// Reads the login from the form or from the `Authorization` header; `nil` without a complete one.
    ///
    /// A request with both is refused, because choosing one would be arbitrary.
    init?(_ request: ServerRequest, _ form: TokenEndpointForm) throws(VendingError) {
        let clientID = form["client_id"]
        let secret = form["client_secret"]
        guard request.header("Authorization") != nil else {
            guard let clientID, let secret else { return nil }
            name = clientID
            credential = secret
            return
        }
        guard secret == nil else {
            throw .invalidRequest("authenticate by HTTP Basic or by client_secret, not by both")
        }
        guard case .present(let name, let password) = BasicCredentials(of: request) else { return nil }
        guard clientID.map({ $0.utf8.elementsEqual(name.utf8) }) ?? true else {
            throw .invalidRequest("client_id differs from the name in the Authorization header")
        }
        self.name = name
        credential = password
    }
}
