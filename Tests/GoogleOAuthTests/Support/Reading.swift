import Crypto

@testable import GoogleOAuth
@testable import HTTPClient

/// The refresh token that was sent in all of these tests.
let sentToken = "1//0gSentRefreshToken-AbCdEfGhIjKlMnOpQrStUvWxYz_0123456789"

/// The client secret that was sent in all of these tests.
let sentClientSecret = "GOCSPX-SentClientSecret-0123456789"

/// Makes an HTTP response.
func response(_ status: Int, _ body: String, headers: String = "") -> HTTPResponse {
    response(status, Array(body.utf8), headers: headers)
}

func response(_ status: Int, _ body: [UInt8], headers: String = "") -> HTTPResponse {
    HTTPResponse(
        status: status,
        body: HTTPBody(body),
        isHTTP2: true,
        newConnection: false,
        head: HTTPBody(Array("HTTP/2 \(status)\r\n\(headers)\r\n".utf8))
    )
}

func read(_ status: Int, _ body: String, headers: String = "") -> ParsedRefreshResponse {
    ParsedRefreshResponse.reading(
        response(status, body, headers: headers),
        sent: [Secret(sentToken), Secret(sentClientSecret)]
    )
}

extension RefreshVerdict {
    var tokens: TokenResponse? {
        guard case .granted(let tokens) = self else { return nil }
        return tokens
    }

    /// The refresh token to store, whatever the verdict.
    var rotated: String? {
        switch self {
        case .granted(let tokens): tokens.rotated?.reveal()
        case .flawed(_, let rotated): rotated?.reveal()
        case .failed: nil
        }
    }

    /// `true` if the server might have processed the request.
    var isOutcomeUnknown: Bool {
        guard case .failed(let failure) = self else { return false }
        return failure.isOutcomeUnknown
    }
}
