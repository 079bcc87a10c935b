import Secrets

@testable import GoogleOAuth
@testable import HTTPClient

/// The refresh token that was sent in all of these tests.
let sentToken = "1//0gSentRefreshToken-AbCdEfGhIjKlMnOpQrStUvWxYz_0123456789"

/// Makes an HTTP response.
func response(_ status: Int, _ body: String, headers: String = "") -> HTTPResponse {
    response(status, Array(body.utf8), headers: headers)
}

func response(_ status: Int, _ body: [UInt8], headers: String = "") -> HTTPResponse {
    HTTPResponse(
        status: status,
        body: HTTPBody(body),
        httpVersion: .http2,
        newConnection: false,
        head: HTTPBody(Array("HTTP/2 \(status)\r\n\(headers)\r\n".utf8))
    )
}

func read(_ status: Int, _ body: String, headers: String = "") -> ParsedRefreshResponse {
    ParsedRefreshResponse.reading(response(status, body, headers: headers), sent: Secret(sentToken))
}

/// A verdict without its values, so that a table can name it.
enum Kind: String, Sendable {
    case granted, flawed, notJSON, invalidGrant, signInRequired, blocked, clientFault, clientOrForeignToken, throttled
    case endpointFault, noAnswer, notSent, givenUp, unknown
}

extension RefreshVerdict {
    var kind: Kind {
        switch self {
        case .granted: .granted
        case .flawed: .flawed
        case .notJSON: .notJSON
        case .invalidGrant: .invalidGrant
        case .signInRequired: .signInRequired
        case .blocked: .blocked
        case .clientFault: .clientFault
        case .clientOrForeignToken: .clientOrForeignToken
        case .throttled: .throttled
        case .endpointFault: .endpointFault
        case .noAnswer: .noAnswer
        case .notSent: .notSent
        case .givenUp: .givenUp
        case .unknown: .unknown
        }
    }

    var tokens: TokenResponse? {
        guard case .granted(let tokens) = self else { return nil }
        return tokens
    }

    /// The refresh token to store, whatever the verdict.
    var rotated: String? {
        switch self {
        case .granted(let tokens): tokens.rotated?.reveal()
        case .flawed(_, let rotated): rotated?.reveal()
        default: nil
        }
    }
}
