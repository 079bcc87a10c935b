#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Checks that a notice comes from your worker, and reads it.
///
///     let verifier = try NoticeVerifier(secrets: secretFile)
///     let notice = try verifier.notice(in: body) { name in request.headers.first(name: name) }
///     if notice.kind == .disconnected { await tokens.forget(user: notice.userID ?? "") }
///
/// The signature follows Standard Webhooks. A notice might come twice, with the same ``Notice/id``.
public struct NoticeVerifier: Sendable {
    /// The age of a notice that is still accepted, and how far it can be ahead, in seconds.
    public static let maximumAge = 300.0
    private static let minimumKeyLength = 24
    private static let minimumTextLength = 32
    /// The worker sends two at most.
    private static let maximumSignatures = 16

    private let keys: [AuthenticationKey]

    /// Creates a verifier from what the worker's `--notice-secret-file` holds: a secret, or two on a line each while
    /// one replaces the other.
    ///
    /// - Throws: ``NoticeError/unusableSecret``.
    public init(secrets: String) throws(NoticeError) {
        let lines = secrets.split(whereSeparator: \.isNewline)
        guard !lines.isEmpty else { throw .unusableSecret }
        var keys: [AuthenticationKey] = []
        for line in lines { keys.append(AuthenticationKey(try Self.key(in: line))) }
        self.keys = keys
    }

    private static func key(in line: Substring) throws(NoticeError) -> [UInt8] {
        let prefix = "whsec_"
        guard line.hasPrefix(prefix) else {
            guard line.utf8.count >= minimumTextLength else { throw .unusableSecret }
            return Array(line.utf8)
        }
        guard let key = Data(base64Encoded: String(line.dropFirst(prefix.count))), key.count >= minimumKeyLength else {
            throw .unusableSecret
        }
        return Array(key)
    }

    /// Returns the notice of a request, if one of the secrets has signed it within five minutes.
    ///
    /// - Parameters:
    ///   - body: The body as it was received. JSON that was decoded and encoded again has another signature.
    ///   - now: The time.
    ///   - header: Returns a header of the request, whatever the case of its name.
    /// - Returns: What the worker says.
    /// - Throws: A ``NoticeError``, which says what to answer.
    public func notice(
        in body: some Collection<UInt8>,
        now: Date = Date(),  // time: allowed
        header: (_ name: String) -> String?
    ) throws(NoticeError) -> Notice {
        guard let id = header("webhook-id") else { throw .missingHeader("webhook-id") }
        guard let timestamp = header("webhook-timestamp") else { throw .missingHeader("webhook-timestamp") }
        guard let signature = header("webhook-signature") else { throw .missingHeader("webhook-signature") }
        guard let sentAt = Self.seconds(timestamp), abs(now.timeIntervalSince1970 - sentAt) <= Self.maximumAge else {
            throw .expired
        }
        let signed = Array("\(id).\(timestamp).".utf8) + body
        guard isSigned(signed, by: signature) else { throw .forged }
        return try Notice(body: Array(body))
    }

    private static func seconds(_ text: String) -> Double? {
        let isNumber = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isNumber, text.utf8.count <= 12, let seconds = Int(text) else { return nil }
        return Double(seconds)
    }

    /// `true` if one of the signatures of a header such as `v1,K7… v1,x9…` is that of one of the keys.
    private func isSigned(_ message: [UInt8], by header: String) -> Bool {
        let signatures = header.split(separator: " ").prefix(Self.maximumSignatures)
        let prefix = "v1,"
        var isSigned = false
        for key in keys {
            let expected = Array(Data(key.code(for: message)).base64EncodedString().utf8)
            for signature in signatures where signature.hasPrefix(prefix) {
                if AuthenticationKey.areEqual(Array(signature.dropFirst(prefix.count).utf8), expected) {
                    isSigned = true
                }
            }
        }
        return isSigned
    }
}
