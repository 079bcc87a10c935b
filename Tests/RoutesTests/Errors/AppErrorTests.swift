import Base
import Storage
import Testing

@testable import HTTPServer
@testable import Routes

/// An error, and the responses to it that the app gets on the routes of each family.
private struct Example: CustomTestStringConvertible, Sendable {
    let error: AppError
    let payPulse: String
    let session: String

    var testDescription: String { payPulse }
}

@Suite("An error of the app's routes")
struct AppErrorTests {
    @Test("has one form on PayPulse's routes, and another on the session routes", arguments: examples)
    private func forms(_ example: Example) {
        #expect(example.error.payPulseResponse.written == example.payPulse)
        #expect(example.error.sessionResponse.written == example.session)
    }

    private static let examples: [Example] = [
        Example(
            error: .missingToken,
            payPulse: #"""
                401
                WWW-Authenticate: Bearer
                {"error":{"code":"INVALID_CREDENTIALS","message":"Authorization with a bearer token is required"}}
                """#,
            session: #"""
                401
                WWW-Authenticate: Bearer
                {"detail":"Could not validate credentials"}
                """#
        ),
        Example(
            error: .invalidToken,
            payPulse: #"""
                401
                WWW-Authenticate: Bearer
                {"error":{"code":"INVALID_TOKEN","message":"The token is not valid"}}
                """#,
            session: #"""
                401
                WWW-Authenticate: Bearer
                {"detail":"Could not validate credentials"}
                """#
        ),
        Example(
            error: .expiredToken,
            payPulse: #"""
                401
                WWW-Authenticate: Bearer
                {"error":{"code":"TOKEN_EXPIRED","message":"The token has expired"}}
                """#,
            session: #"""
                401
                WWW-Authenticate: Bearer
                {"detail":"Could not validate credentials"}
                """#
        ),
        Example(
            error: .foreignToken,
            payPulse: #"""
                401
                WWW-Authenticate: Bearer
                {"error":{"code":"INVALID_TOKEN","message":"The token is of another issuer or for another audience"}}
                """#,
            session: #"""
                401
                WWW-Authenticate: Bearer
                {"detail":"Could not validate credentials"}
                """#
        ),
        Example(
            error: .keysUnavailable(retryAfter: .seconds(7)),
            payPulse: #"""
                503
                Retry-After: 7
                {"error":{"code":"DEPENDENCY_FAILURE","message":"The keys of the app's login cannot be fetched; try again"}}
                """#,
            session: #"""
                503
                Retry-After: 7
                {"detail":"The keys of the app's login cannot be fetched; try again"}
                """#
        ),
        Example(
            error: .deletedUser,
            payPulse: #"""
                404
                {"error":{"code":"USER_NOT_FOUND","message":"There is no such user"}}
                """#,
            session: #"""
                401
                WWW-Authenticate: Bearer
                {"detail":"Could not validate credentials"}
                """#
        ),
        Example(
            error: .inactiveUser,
            payPulse: #"""
                401
                WWW-Authenticate: Bearer
                {"error":{"code":"INVALID_CREDENTIALS","message":"The user is not active"}}
                """#,
            session: #"""
                401
                WWW-Authenticate: Bearer
                {"detail":"Could not validate credentials"}
                """#
        ),
        Example(
            error: .invalidRefreshToken,
            payPulse: #"""
                401
                WWW-Authenticate: Bearer
                {"error":{"code":"INVALID_TOKEN","message":"Invalid refresh token"}}
                """#,
            session: #"""
                401
                WWW-Authenticate: Bearer
                {"detail":"Invalid refresh token"}
                """#
        ),
        Example(
            error: .notMovedYet,
            payPulse: #"""
                503
                Refresh-Worker-User: not-moved
                {"error":{"code":"DEPENDENCY_FAILURE","message":"The user is not moved yet; try again"}}
                """#,
            session: #"""
                503
                Refresh-Worker-User: not-moved
                Retry-After: 60
                {"detail":"The user is not moved yet; try again"}
                """#
        ),
        Example(
            error: .refusedByGoogle,
            payPulse: #"""
                400
                {"error":{"code":"INVALID_CREDENTIALS","message":"Google does not accept this access token for this app"}}
                """#,
            session: #"""
                400
                {"detail":"Invalid Google access token"}
                """#
        ),
        Example(
            error: .refusedIDToken,
            payPulse: #"""
                400
                {"error":{"code":"INVALID_CREDENTIALS","message":"The ID token is not valid for this app, or was used before"}}
                """#,
            session: #"""
                400
                {"detail":"Invalid Google ID token"}
                """#
        ),
        Example(
            error: .googleUnreachable,
            payPulse: #"""
                502
                {"error":{"code":"DEPENDENCY_FAILURE","message":"Google cannot be reached; try again"}}
                """#,
            session: #"""
                502
                {"detail":"Google cannot be reached; try again"}
                """#
        ),
        Example(
            error: .refusedCode,
            payPulse: #"""
                400
                {"error":{"code":"INVALID_CODE","message":"Google does not accept this server_auth_code: it can be used once, soon after the sign-in; sign in again"}}
                """#,
            session: #"""
                400
                {"detail":"Google does not accept this server_auth_code: it can be used once, soon after the sign-in; sign in again"}
                """#
        ),
        Example(
            error: .noServerClient,
            payPulse: #"""
                400
                {"error":{"code":"INVALID_CODE","message":"This server takes no server_auth_code: it has no server client id"}}
                """#,
            session: #"""
                400
                {"detail":"This server takes no server_auth_code: it has no server client id"}
                """#
        ),
        Example(
            error: .codeOfOtherAccount,
            payPulse: #"""
                400
                {"error":{"code":"INVALID_CREDENTIALS","message":"The server_auth_code belongs to another Google account than the access_token"}}
                """#,
            session: #"""
                400
                {"detail":"The server_auth_code belongs to another Google account than the access_token"}
                """#
        ),
        Example(
            error: .stillConnecting,
            payPulse: #"""
                503
                Retry-After: 5
                {"error":{"code":"DEPENDENCY_FAILURE","message":"The connection is not stored yet; send the same code again"}}
                """#,
            session: #"""
                503
                Retry-After: 5
                {"detail":"The connection is not stored yet; send the same code again"}
                """#
        ),
        Example(
            error: .undeclaredBody,
            payPulse: #"""
                411
                {"error":{"code":"INVALID_JSON","message":"A body is required, and its Content-Length"}}
                """#,
            session: #"""
                411
                {"detail":"A body is required, and its Content-Length"}
                """#
        ),
        Example(
            error: .unsupportedMediaType,
            payPulse: #"""
                415
                {"error":{"code":"INVALID_JSON","message":"The body must be application/json or application/x-www-form-urlencoded"}}
                """#,
            session: #"""
                415
                {"detail":"The body must be application/json"}
                """#
        ),
        Example(
            error: .unreadableBody,
            payPulse: #"""
                400
                {"error":{"code":"INVALID_JSON","message":"The body is not a JSON object"}}
                """#,
            session: #"""
                400
                {"detail":"The body is not a JSON object"}
                """#
        ),
        Example(
            error: .missingField("access_token"),
            payPulse: #"""
                400
                {"error":{"code":"MISSING_FIELDS","message":"access_token is required"}}
                """#,
            session: #"""
                400
                {"detail":"access_token is required"}
                """#
        ),
        Example(
            error: .invalidField("expires_in", mustBe: "a number of seconds"),
            payPulse: #"""
                400
                {"error":{"code":"INVALID_JSON","message":"expires_in must be a number of seconds"}}
                """#,
            session: #"""
                400
                {"detail":"expires_in must be a number of seconds"}
                """#
        ),
        Example(
            error: .tooManyRequests(retryAfter: .milliseconds(1500)),
            payPulse: #"""
                429
                Retry-After: 2
                {"error":{"code":"DEPENDENCY_FAILURE","message":"Too many requests; try again later"}}
                """#,
            session: #"""
                429
                Retry-After: 2
                {"detail":"Too many requests; try again later"}
                """#
        ),
        Example(
            error: .unknownPath,
            payPulse: #"""
                404
                {"error":{"code":"NOT_FOUND","message":"There is no such route"}}
                """#,
            session: #"""
                404
                {"detail":"Not Found"}
                """#
        ),
        Example(
            error: .wrongMethod,
            payPulse: #"""
                405
                {"error":{"code":"METHOD_NOT_ALLOWED","message":"The route does not accept this method"}}
                """#,
            session: #"""
                405
                {"detail":"Method Not Allowed"}
                """#
        ),
        Example(
            error: .internalError,
            payPulse: #"""
                500
                {"error":{"code":"INTERNAL_SERVER_ERROR","message":"The server could not do this; try again"}}
                """#,
            session: #"""
                500
                {"detail":"Internal Server Error"}
                """#
        ),
        Example(
            error: .refusedByServer(.bodyTooLarge),
            payPulse: #"""
                413
                {"error":{"code":"INVALID_JSON","message":"The body is too large"}}
                """#,
            session: #"""
                413
                {"detail":"The body is too large"}
                """#
        ),
        Example(
            error: .refusedByServer(.outOfMemory),
            payPulse: #"""
                503
                {"error":{"code":"DEPENDENCY_FAILURE","message":"Too many requests at once, try again later"}}
                """#,
            session: #"""
                503
                Retry-After: 60
                {"detail":"Too many requests at once, try again later"}
                """#
        ),
    ]
}
