/// The reason why a secret could not be sealed or opened.
///
/// No case holds any part of the secret.
package enum SealError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The key ring lacks the key that sealed the value.
    case unknownKey(KeyID)
    /// The value was altered, belongs to another row or column, or was sealed by another key of the same id.
    case damaged(KeyID)
    /// The bytes do not have the form of a sealed value.
    case malformed
    /// An OpenSSL call failed that should succeed; the code comes from its error queue.
    case libraryFailure(call: String, code: UInt)

    package var description: String {
        switch self {
        case .unknownKey(let id): "the key ring has no key \(id)"
        case .damaged(let id): "the value sealed by key \(id) is damaged, or belongs to another row or another key"
        case .malformed: "the bytes are not a sealed value"
        case .libraryFailure(let call, let code): "OpenSSL's \(call) failed (error 0x\(String(code, radix: 16)))"
        }
    }
}
