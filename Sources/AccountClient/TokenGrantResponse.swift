/// The tokens as the server issues them.
struct TokenGrantResponse: Decodable, Sendable {
    enum CodingKeys: String, CodingKey {
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
    }

    let accessToken: String
    let refreshToken: String

    var pair: TokenPair { TokenPair(accessToken: accessToken, refreshToken: refreshToken) }
}
