/// Why a request is not accepted as a notice of the worker.
public enum NoticeError: Error, Hashable, Sendable {
    /// The text holds no secret: `whsec_` and the Base64 of at least 24 bytes, or a text of at least 32 bytes, on one
    /// line or two.
    case unusableSecret
    /// The request lacks this header. Answer 400.
    case missingHeader(String)
    /// The notice was sent more than five minutes ago, or this machine's clock is wrong. Answer 400.
    case expired
    /// No secret has signed this notice. Answer 401.
    case forged
    /// The signature is right, and the body is not a notice. Answer 400.
    case unreadable
}

extension NoticeError: CustomStringConvertible {
    /// The problem in one sentence.
    public var description: String {
        switch self {
        case .unusableSecret:
            "The notice secret must be whsec_ and the Base64 of at least 24 bytes, or a text of at least 32 bytes."
        case .missingHeader(let name): "The request has no header \(name)."
        case .expired: "The notice's time is more than five minutes off."
        case .forged: "The notice's signature is of another secret."
        case .unreadable: "The notice's body cannot be read."
        }
    }
}
