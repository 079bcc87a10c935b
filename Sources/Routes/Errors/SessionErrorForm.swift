internal import Base
internal import HTTPServer

/// The errors of the session routes, and of every path under `/api/`, as ComprehensionEngine's app reads them:
///
///     {"detail": "Could not validate credentials"}
///
/// Where the app does not expect other words, they are those of ``PayPulseErrorForm``.
struct SessionErrorForm: Hashable, Sendable {
    let status: Int
    let detail: String

    private init(_ status: Int, detail: String) {
        self.status = status
        self.detail = detail
    }

    init(_ error: AppError) {
        self =
            switch error {
            case .missingToken, .invalidToken, .expiredToken, .foreignToken, .deletedUser, .inactiveUser:
                // The app reacts to every refusal of a caller in the same way: it refreshes once, then signs out.
                Self(401, detail: "Could not validate credentials")
            case .refusedByGoogle:
                Self(400, detail: "Invalid Google access token")
            case .refusedIDToken:
                Self(400, detail: "Invalid Google ID token")
            case .unsupportedMediaType:
                Self(415, detail: "The body must be application/json")
            case .unknownPath:
                Self(404, detail: "Not Found")
            case .wrongMethod:
                Self(405, detail: "Method Not Allowed")
            case .internalError:
                Self(500, detail: "Internal Server Error")
            case .keysUnavailable, .invalidRefreshToken, .notMovedYet, .tooManyRequests, .googleUnreachable,
                .undeclaredBody, .unreadableBody, .missingField, .invalidField, .refusedByServer:
                Self(sharedWith: error)
            case .refusedCode, .noServerClient, .codeOfOtherAccount, .stillConnecting, .accountMismatch,
                .accountIsConnected, .accountSwitch, .unknownConnection, .tooManyConnections:
                // No session route connects an account.
                Self(sharedWith: error)
            }
    }

    private init(sharedWith error: AppError) {
        let form = PayPulseErrorForm(error)
        self.init(form.status, detail: form.message)
    }
}

extension AppError {
    /// The wait of an error that passes at an unknown time.
    private static let usualWait: Duration = .seconds(60)

    var sessionResponse: ServerResponse {
        let form = SessionErrorForm(self)
        var headers = headers(status: form.status)
        let saysWhen = headers.contains { $0.name == "Retry-After" }
        if form.status == 503, !saysWhen { headers.append(Self.usualWait.retryAfter) }
        return .object(status: form.status, headers: headers) { $0.field("detail", form.detail) }
    }
}
