import Base
import Crypto
import HTTPServer
import Scheduler

/// The responses of the token endpoint (RFC 6749, section 5.1; RFC 8693, section 2.2.1).
enum TokenEndpointResponse {
    /// The headers that RFC 6749 requires of every response.
    static let headers: [ServerRequest.Field] = [ServerResponse.noStore, ("Pragma", "no-cache")]

    /// Returns the response with a token, whose scope is every scope that the user has granted.
    static func success(
        _ token: VendedToken,
        to grantType: TokenEndpointRequest.GrantType?,
        at now: Timestamp
    ) -> ServerResponse {
        .object(headers: headers) { line in
            line.field("access_token", token.accessToken.reveal())
            if grantType == .tokenExchange { line.field("issued_token_type", TokenEndpointRequest.accessTokenType) }
            line.field("token_type", token.type)
            line.field("expires_in", token.secondsLeft(at: now))
            if !token.scope.isEmpty { line.field("scope", token.scope) }
        }
    }
}
