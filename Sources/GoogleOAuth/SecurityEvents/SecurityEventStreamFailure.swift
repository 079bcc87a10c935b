import Base

/// The reason why Google did not perform a request about the stream, for an operator.
package struct SecurityEventStreamFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: Hashable, Sendable {
        /// The service account's key cannot sign.
        case unsigned
        case unreachable
        case malformed
        case unauthenticated
        case forbidden
        case noStream
        /// Google is overloaded or faulty; a later retry may help.
        case unavailable(status: Int)
    }

    private static let longestText = 512

    package let reason: Reason
    /// The message of Google or of this machine, safe for a terminal.
    package let text: String?

    init(_ reason: Reason, text: String? = nil) {
        self.reason = reason
        self.text = text.map { text in
            let shown = String(String.UnicodeScalarView(text.unicodeScalars.map { $0.disturbsTerminals ? " " : $0 }))
            return shown.capped(at: Self.longestText)
        }
    }

    init(status: Int, answer: JSONValue?) {
        let reason: Reason =
            switch status {
            case 400: .malformed
            case 401: .unauthenticated
            case 403: .forbidden
            case 404: .noStream
            default: .unavailable(status: status)
            }
        self.init(reason, text: answer?["error"]?["message"]?.string)
    }

    package var description: String {
        guard let text else { return advice }
        return "\(advice) (\(text))"
    }

    private var advice: String {
        switch reason {
        case .unsigned: "the service account's key cannot sign"
        case .unreachable: "Google cannot be reached"
        case .malformed:
            "Google refuses the request: the URL must be https, on an authorized domain of the Cloud project"
        case .unauthenticated:
            "Google rejects the service account's key: it may have been deleted, or this machine's clock may be wrong"
        case .forbidden:
            """
            the service account has no permission: enable the RISC API in the Cloud project and give the account the role \
            roles/riscconfigs.admin; if the project uses Firebase with Google Sign-In, only Firebase can configure the \
            stream
            """
        case .noStream: "the project has no stream yet: run google-events register"
        case .unavailable(let status): "Google has a temporary fault (status \(status)); try again later"
        }
    }
}
