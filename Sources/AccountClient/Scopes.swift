/// Compares scopes in the form in which Google grants them.
enum Scopes {
    /// Two scopes that Google accepts by their OpenID Connect names and returns by these.
    ///
    /// https://developers.google.com/identity/protocols/oauth2/scopes#oauth2
    private static let fullNames = [
        "email": "https://www.googleapis.com/auth/userinfo.email",
        "profile": "https://www.googleapis.com/auth/userinfo.profile",
    ]

    static func missing(_ needed: [String], from granted: [String]) -> [String] {
        var present = Set(granted.map(fullName))
        return needed.filter { present.insert(fullName($0)).inserted }
    }

    private static func fullName(_ scope: String) -> String { fullNames[scope] ?? scope }
}
