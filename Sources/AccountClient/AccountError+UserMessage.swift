private import Foundation

extension AccountError {
    /// What to tell the user, in a sentence of English, or nil if there is nothing to tell.
    ///
    /// ``description`` is for the app's developers. For other languages, translate the cases.
    public var userMessage: String? {
        switch self {
        case .cancelled: nil
        case .signedOut: "Please sign in again."
        case .sessionReplaced: "Another account is signed in now. Please try again."
        case .refused(let status, let code, _): Self.userMessage(status: status, code: code)
        case .otherAccount(let expected, let found): "Please choose the Google account \(expected), not \(found)."
        case .accountIsConnected: "This Google account is already connected."
        case .unknownConnection: "This Google account is no longer in your list."
        case .tooManyConnections: "You cannot connect more Google accounts. Please disconnect one first."
        case .unreadableResponse: "This app does not understand the answer of its server. Please update the app."
        case .unreachable(let code): Self.userMessage(code)
        case .tokenStore: "This device could not save or read your sign-in. Please unlock it and try again."
        case .accessToken: "Your sign-in could not be confirmed. Please try again."
        case .insecureBaseURL, .foreignAddress, .unusableBody, .ownSession:
            "This app has made a mistake. Please update it."
        }
    }

    private static func userMessage(status: Int, code: String?) -> String {
        switch (status, code) {
        case (400, "INVALID_CREDENTIALS"), (400, "INVALID_CODE"):
            "Google did not confirm this account. Please sign in with Google again."
        case (401, _): "Please sign in again."
        case (403, _): "You are not allowed to do this."
        case (404, "USER_NOT_FOUND"): "This account was deleted."
        case (429, _): "There were too many attempts. Please try again later."
        case (500..., _): "The server has a problem. Please try again later."
        default: "The server did not accept this. Please try again, or update the app."
        }
    }

    private static func userMessage(_ code: URLError.Code) -> String {
        switch code {
        case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff: "You are offline. Please try again."
        case .timedOut: "The server took too long to answer. Please try again."
        default: "The server cannot be reached. Please try again."
        }
    }
}
