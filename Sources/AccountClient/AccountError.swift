public import Foundation

/// Why a call failed.
///
/// Its texts never contain a token.
public enum AccountError: Error, Equatable, Sendable {
    /// The operation of the token store that failed.
    public enum StoreAction: String, Sendable {
        /// Reading a token.
        case load
        /// Keeping a token.
        case save
        /// Removing a token.
        case remove
    }

    /// The backend's address is not `https`, which is required except on this machine.
    case insecureBaseURL
    /// The request goes to another server than the client's, which must not see the user's token.
    case foreignAddress
    /// The request's body is a stream, which cannot be sent again after a refresh, or does not encode as JSON.
    case unusableBody
    /// No user is signed in, or the server has ended the session: show the sign-in.
    case signedOut
    /// Another sign-in replaced the one for which this call was made.
    case sessionReplaced
    /// The server answered with this status and, if present, its code and message.
    case refused(status: Int, code: String?, message: String?)
    /// The tokens are of another Google account than the connection. Both values are names for people: addresses, if
    /// they are known.
    case otherAccount(expected: String, found: String)
    /// The account of the tokens is already another connection of the user: the one with this id.
    case accountIsConnected(connection: String)
    /// The user has no connection with this id.
    case unknownConnection
    /// The user has as many connections as the backend allows.
    case tooManyConnections
    /// The server reported success, but this client does not understand the content.
    case unreadableResponse(status: Int)
    /// The server was not reached, or its response was lost. The user stays signed in.
    case unreachable(URLError.Code)
    /// The token store failed. The domain and code are those of its error.
    case tokenStore(StoreAction, domain: String, code: Int)
    /// The app's own session failed to give an access token. The domain and code are those of its error.
    case accessToken(domain: String, code: Int)
    /// The app signs its users in and out elsewhere: this client cannot.
    case ownSession
    /// The calling task was cancelled.
    case cancelled

    /// The text with which the server refuses the refresh token of an ended session.
    private static let invalidRefreshToken = "Invalid refresh token"

    /// `true` for the server's own refusal of a refresh token. A bare 401 can come from a gateway, a captive portal or
    /// a proxy, which do not know the session.
    var endsSession: Bool {
        if case .refused(status: 401, _, message: Self.invalidRefreshToken) = self { true } else { false }
    }

    /// Returns the error of a connection that one of the server's codes means, or nil for any other code.
    static func connection(code: String?, expected: String?, found: String?, connection: String?) -> Self? {
        switch code {
        case "ACCOUNT_MISMATCH", "ACCOUNT_SWITCH":
            guard let expected, let found else { return nil }
            return .otherAccount(expected: expected, found: found)
        case "ACCOUNT_CONNECTED":
            guard let connection else { return nil }
            return .accountIsConnected(connection: connection)
        case "CONNECTION_NOT_FOUND": return .unknownConnection
        case "TOO_MANY_CONNECTIONS": return .tooManyConnections
        default: return nil
        }
    }

    /// Returns an error with the parts of the store's error that cannot contain a token.
    static func tokenStore(_ action: StoreAction, failedWith error: any Error) -> Self {
        let error = error as NSError
        return .tokenStore(action, domain: error.domain, code: error.code)
    }

    /// Returns the error of the app's own session, without the parts that might contain a token.
    static func accessToken(_ error: any Error) -> Self {
        switch error {
        case let error as AccountError: error
        case is CancellationError: .cancelled
        case let error as URLError: .unreachable(error.code)
        default: .accessToken(domain: (error as NSError).domain, code: (error as NSError).code)
        }
    }
}

extension AccountError: CustomStringConvertible, LocalizedError {
    /// The problem in one sentence.
    public var description: String {
        switch self {
        case .insecureBaseURL: "The backend's address must begin with https://."
        case .foreignAddress: "The request goes to another server than the backend."
        case .unusableBody: "The request's body must be data, so that it can be sent again."
        case .signedOut: "No user is signed in."
        case .sessionReplaced: "Another sign-in replaced this one."
        case .refused(let status, let code, let message):
            Self.text(status: status, code: code, message: message)
        case .otherAccount(let expected, let found):
            "This connection belongs to \(expected), and the tokens to \(found)."
        case .accountIsConnected(let connection): "The Google account is already the connection \(connection)."
        case .unknownConnection: "The user has no such connection."
        case .tooManyConnections: "The user has as many connections as the backend allows: disconnect one first."
        case .unreadableResponse(let status): "The server answered \(status) with content that cannot be read."
        case .unreachable(let code): "The server could not be reached (URLError \(code.rawValue))."
        case .tokenStore(let action, let domain, let code):
            "The token store failed to \(action.rawValue) a token (\(domain) \(code))."
        case .accessToken(let domain, let code): "The app's session gave no access token (\(domain) \(code))."
        case .ownSession: "The app signs its users in elsewhere, and must sign them out there."
        case .cancelled: "The call was cancelled."
        }
    }

    private static func text(status: Int, code: String?, message: String?) -> String {
        var text = "The server answered \(status)"
        if let code { text += " \(code)" }
        if let message { text += ": \(message)" }
        return text + "."
    }

    /// The same sentence, for `localizedDescription`.
    public var errorDescription: String? { description }
}
