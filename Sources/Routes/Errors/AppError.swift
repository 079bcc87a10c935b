internal import Base
internal import HTTPServer
internal import Scheduler
internal import Storage

/// An error of a route that the app calls.
///
/// Each family of routes has its own form of it, which shows the whole family in one file:
/// ``PayPulseErrorForm`` and ``SessionErrorForm``.
enum AppError: Error, Hashable, Sendable {
    // MARK: The caller

    case missingToken
    /// The token, its session or its user is invalid. The response does not say which.
    case invalidToken
    case expiredToken
    /// The signature is good, but not for this worker. The bearer can read the token, so the response can help to
    /// correct the settings.
    case foreignToken
    /// The keys that the token's signer publishes cannot be fetched.
    case keysUnavailable(retryAfter: Duration)
    /// The user was deleted, and the token was issued before.
    case deletedUser
    /// The backend has disabled the user.
    case inactiveUser
    case invalidRefreshToken
    /// The former backend has signed the user in, and no import has brought the user yet.
    case notMovedYet
    case tooManyRequests(retryAfter: Duration)

    // MARK: Google

    /// Google's token is invalid, belongs to another app, or its user's address is not verified.
    case refusedByGoogle
    /// The ID token is invalid, belongs to another app, or was used before.
    case refusedIDToken
    case googleUnreachable
    /// The code is spent, has expired, or is of another client or user.
    case refusedCode
    /// No server client is configured.
    case noServerClient
    /// The account of the code is not that of the access token.
    case codeOfOtherAccount
    /// The connection belongs to another account than the tokens. Both are names for people.
    case accountMismatch(expected: String, found: String)
    /// The tokens' account is another connection of the user.
    case accountIsConnected(ConnectionID)
    /// The default connection would switch to another account, which the app does not want.
    case accountSwitch(from: String, to: String)
    case unknownConnection
    case tooManyConnections(limit: Int)
    /// The exchange has not ended yet, or too many others are in progress.
    case stillConnecting

    // MARK: The request. No error contains parts of its body.

    case undeclaredBody
    case unsupportedMediaType
    case unreadableBody
    case missingField(String)
    /// `mustBe` is for example "a number of seconds".
    case invalidField(String, mustBe: String)
    case unknownPath
    case wrongMethod
    /// The server refuses the request before a route gets it.
    case refusedByServer(RequestError)
    case internalError

    init(_ error: ConnectionTargetError) {
        switch error {
        case .unknownConnection: self = .unknownConnection
        case .tooManyConnections(let limit): self = .tooManyConnections(limit: limit)
        case .accountIsConnected(let connection): self = .accountIsConnected(connection)
        }
    }

    /// Makes the error for another one that the app can be told, or `nil` for an internal one.
    init?(_ error: any Error) {
        switch error {
        case let error as AppError: self = error
        case is VendingError: self = .googleUnreachable
        default: return nil
        }
    }
}

extension AppError {
    /// The wait before another try, for errors that might pass.
    private var retryAfter: Duration? {
        switch self {
        case .keysUnavailable(let wait), .tooManyRequests(let wait): wait
        case .stillConnecting: .seconds(5)
        default: nil
        }
    }

    /// The headers that both families have.
    func headers(status: Int) -> [ServerRequest.Field] {
        var headers: [ServerRequest.Field] = []
        if status == 401 { headers.append(("WWW-Authenticate", "Bearer")) }
        // So that a proxy can send this request, and no other one, to the former backend.
        if self == .notMovedYet { headers.append(("Refresh-Worker-User", "not-moved")) }
        if let retryAfter { headers.append(retryAfter.retryAfter) }
        return headers
    }
}
