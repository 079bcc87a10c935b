import Base
import Crypto
import HTTPClient
import Scheduler
import Storage

/// Opens the delivery of notices.
extension CommandContext {
    /// Reads the keys that sign notices: one, or two while one replaces the other.
    func openNoticeKeys() throws -> [MessageKey] {
        guard let path = configuration.noticeSecretFile else {
            throw CommandError(.configuration, "--notice-secret-file is needed to sign notices")
        }
        let lines = try Secret.read(privateFile: path, for: "--notice-secret-file").lines
        let secrets = lines.compactMap(Self.noticeSecret(in:))
        guard (1...2).contains(lines.count), secrets.count == lines.count else {
            throw CommandError(
                .configuration,
                """
                --notice-secret-file: \(path) must hold one secret, or two on a line each: whsec_ and the Base64 of at least \
                \(Self.minimumKeyLength) bytes, or a text of at least \(TokenSigner.minimumSecretLength) bytes. To make a new one, \
                in a new file of mode 0600: echo "whsec_$(openssl rand -base64 32)"
                """
            )
        }
        return secrets.map { MessageKey($0) }
    }

    /// The length that Standard Webhooks asks for.
    static let minimumKeyLength = 24

    /// Returns the key in a line: the bytes that the form of Standard Webhooks encodes, or those of any other text.
    private static func noticeSecret(in line: Secret) -> Secret? {
        guard let encoded = line.suffix(after: "whsec_") else {
            return line.count >= TokenSigner.minimumSecretLength ? line : nil
        }
        return Base64.decode(encoded).flatMap { $0.count >= minimumKeyLength ? $0 : nil }
    }

    /// Returns the delivery of notices, if `--notice-url` is set.
    ///
    /// It has an HTTP client of its own. A receiver can keep a client's thread busy through TLS, and that must not
    /// delay requests to Google.
    func openNotices(store: any Store, log: EngineLog) throws -> NoticeDispatcher? {
        guard let endpoint = configuration.noticeURL else { return nil }
        return NoticeDispatcher(
            store: store,
            http: try openHTTP(maximumInFlight: NoticeDispatcher.batchSize),
            endpoint: endpoint,
            keys: try openNoticeKeys(),
            expiryNotice: configuration.expiryNotice,
            workerName: workerName,
            log: log,
            random: random
        )
    }
}
