@testable import GoogleOAuth

/// A verdict without its values, so that a table can name it.
enum VerdictKind: String, Sendable {
    case granted, flawed, notJSON, invalidGrant, signInRequired, blocked, clientFault, clientOrForeignToken, throttled
    case appNotAuthentic, proofRefused, endpointFault, noAnswer, notSent, givenUp, unknown
}

extension RefreshVerdict {
    var kind: VerdictKind {
        switch self {
        case .granted: .granted
        case .flawed: .flawed
        case .failed(let failure): failure.kind
        }
    }
}

extension RefreshFailure {
    fileprivate var kind: VerdictKind {
        switch self {
        case .notJSON: .notJSON
        case .invalidGrant: .invalidGrant
        case .signInRequired: .signInRequired
        case .blocked: .blocked
        case .clientFault: .clientFault
        case .clientOrForeignToken: .clientOrForeignToken
        case .appNotAuthentic: .appNotAuthentic
        case .proofRefused: .proofRefused
        case .throttled: .throttled
        case .endpointFault: .endpointFault
        case .noAnswer: .noAnswer
        case .notSent: .notSent
        case .givenUp: .givenUp
        case .unknown: .unknown
        }
    }
}
