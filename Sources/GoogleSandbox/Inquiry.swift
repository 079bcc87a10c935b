internal import HTTPServer

/// A request to one of Google's endpoints, read.
struct Inquiry: Sendable {
    enum Route: String, Sendable {
        case token, userinfo, tokeninfo, revoke
    }

    /// Under which names userinfo answers.
    enum Naming: Sendable {
        /// As the API oauth2:v2: `id`, `verified_email`.
        case version2
        /// As OpenID Connect: `sub`, `email_verified`.
        case openID
    }

    let route: Route
    var naming = Naming.openID

    /// The form's fields, or for tokeninfo the query's too.
    var fields: [ServerRequest.Field] = []

    /// The token of an Authorization header.
    var bearer: String?

    func field(_ name: String) -> String? {
        fields.first { $0.name == name }?.value
    }

    /// nil where Google has nothing under that path and method, which it answers with 404.
    init?(_ request: ServerRequest) {
        switch (request.method, request.path) {
        case ("POST", "/token"):
            route = .token
            fields = request.form
        case ("POST", "/revoke"):
            route = .revoke
            // Google's own examples put the token in the query of the POST (protocols/oauth2/native-app#tokenrevoke).
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
        let authorization = request.header("Authorization") ?? ""
        if authorization.lowercased().hasPrefix("bearer ") {
            bearer = String(authorization.dropFirst("bearer ".count))
        }
    }
}
