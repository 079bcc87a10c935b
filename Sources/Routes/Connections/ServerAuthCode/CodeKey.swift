internal import Crypto

/// The hash of a code, by which its exchange is found: the time of the search shows nothing about the code.
struct CodeKey: Hashable, Sendable {
    private let hash: [UInt8]

    init(of code: Secret) {
        hash = code.withBytes { Digest.sha256($0) }
    }
}
