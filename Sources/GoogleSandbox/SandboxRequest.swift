internal import HTTPServer

/// A parsed request to one of Google's endpoints.
struct SandboxRequest: Sendable {
    enum Route: String, Sendable {
        case token, userinfo, tokeninfo, revoke
    }

    /// The field names of a userinfo answer.
    enum Naming: Sendable {
        /// The names of the API oauth2:v2: `id`, `verified_email`.
        case version2
        /// The names of OpenID Connect: `sub`, `email_verified`.
        case openID
    }

    let route: Route
    var naming = Naming.openID

    /// The fields of the form, and for tokeninfo also those of the query.
    var fields: [ServerRequest.Field] = []

    /// The token of the Authorization header.
    var bearer: String?

    func field(_ name: String) -> String? {
        fields.first { $0.name == name }?.value
    }

    /// Parses a request, and returns `nil` if Google has no such method and path, which it answers with 404.
    init?(_ request: ServerRequest) {
        switch (request.method, request.path) {
        case ("POST", "/token"):
            route = .token
            fields = request.form
        case ("POST", "/revoke"):
            route = .revoke
            // Google's own examples put the token into the query of the POST (protocols/oauth2/native-app#tokenrevoke).
            fields = request.form + request.query
        case ("GET", "/tokeninfo"), ("POST", "/tokeninfo"):
            route = .tokeninfo
            fields = request.query + request.form
        case ("GET", "/oauth2/v2/userinfo"), ("GET", "/userinfo/v2/me"):
            route = .userinfo
            naming = .version2
        case ("GET", "/oauth2/v3/userinfo"), ("GET", "/v1/userinfo"):
            route = .userinfo
        default:
            return nil
        }
        bearer = BearerToken(of: request).text
    }
}
