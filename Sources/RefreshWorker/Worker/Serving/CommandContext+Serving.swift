import Base
import Crypto
import HTTPServer
import Routes
import Scheduler
import Storage
import Synchronization
import Telemetry

/// Opens the dependencies of the listeners and the notices, with errors that say how to fix them.
extension CommandContext {
    /// Reads the secrets of the app's own tokens: one, or two while one replaces the other.
    func openSigner() throws -> TokenSigner {
        let source: String
        let secrets: [Secret]
        if let path = configuration.jwtSecretFile {
            source = "--jwt-secret-file: \(path)"
            secrets = try CommandContext.readPrivate(path, for: "--jwt-secret-file").lines
        } else {
            source = "the variable \(Setting.jwtSecretName)"
            secrets = Secret(inputs.environment[Setting.jwtSecretName] ?? "").lines
        }
        do throws(CryptoError) {
            return try TokenSigner(secrets: secrets)
        } catch {
            throw CommandError(.configuration, "\(source): \(error)")
        }
    }

    /// Reads the services that can get tokens.
    func readServices() throws -> ServiceList {
        guard let path = configuration.servicesFile else {
            throw CommandError(.configuration, "--services-file is needed to vend tokens")
        }
        let text = try CommandContext.readPrivate(path, for: "--services-file")
        do throws(FormatError) {
            return try ServiceList(parsing: text.reveal().utf8)
        } catch {
            throw CommandError(.configuration, "--services-file: \(path): \(error)")
        }
    }

    /// Reads the certificate of the internal listener, or returns `nil` if it serves plain HTTP.
    func readInternalCertificate() throws -> ServerCertificate? {
        guard let path = configuration.internalCertificateFile, let keyPath = configuration.internalKeyFile else {
            return nil
        }
        let chain: [UInt8]
        do throws(InputError) {
            chain = try inputs.files.read(path)
        } catch {
            let code: ExitCode = error.mayPass ? .inputOutput : .configuration
            throw CommandError(code, "--internal-certificate: \(path) \(error.message)")
        }
        let key = try CommandContext.readPrivate(keyPath, for: "--internal-key")
        do throws(HTTPServerError) {
            return try ServerCertificate(chain: chain, key: key)
        } catch {
            let origin =
                switch error.code {
                case .badCertificate: "--internal-certificate: \(path)"
                case .badKey: "--internal-key: \(keyPath)"
                default: "--internal-certificate and --internal-key: \(path) and \(keyPath)"
                }
            throw CommandError(.configuration, "\(origin): \(error)")
        }
    }

    /// Reads the keys that sign notices: one, or two while one replaces the other.
    func openNoticeKeys() throws -> [MessageKey] {
        guard let path = configuration.noticeSecretFile else {
            throw CommandError(.configuration, "--notice-secret-file is needed to sign notices")
        }
        let lines = try CommandContext.readPrivate(path, for: "--notice-secret-file").lines
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
    private static let minimumKeyLength = 24

    /// Returns the key in a line: the bytes that the form of Standard Webhooks encodes, or those of any other text.
    private static func noticeSecret(in line: Secret) -> Secret? {
        guard let encoded = line.suffix(after: "whsec_") else {
            return line.count >= TokenSigner.minimumSecretLength ? line : nil
        }
        return Base64.decode(encoded).flatMap { $0.count >= minimumKeyLength ? $0 : nil }
    }

    /// Returns the delivery of notices, if `--notice-url` is set.
    ///
    /// It has an HTTP client of its own: TLS lets a receiver keep a client's thread busy, which must not delay requests to
    /// Google.
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

    /// Returns the address of a listener.
    ///
    /// `inherited` are the sockets that systemd passed.
    func listenAddress(_ location: ListenerLocation, inherited: [String: Int32]) throws -> ListenAddress {
        switch location {
        case .own(.unix(let path, mode: _)): return .unix(path: path, mode: configuration.socketMode)
        case .own(let address): return address
        case .systemd(let name):
            guard let descriptor = inherited[name] else {
                throw CommandError(
                    .configuration,
                    """
                    systemd has not passed a socket named \(DisplayedText(name)): see FileDescriptorName= in the \
                    socket's unit, and start the service through it
                    """
                )
            }
            return .inherited(descriptor: descriptor)
        }
    }
}

/// Raises alarms about the certificate that a listener presents.
final class CertificateMonitor: Sendable {
    private let certificate: Mutex<ServerCertificate>
    private let path: String
    private let log: EngineLog
    private let time: any TimeSource

    init(_ certificate: ServerCertificate, path: String, log: EngineLog, time: any TimeSource) {
        self.certificate = Mutex(certificate)
        self.path = path
        self.log = log
        self.time = time
    }

    /// The end of the current certificate's validity.
    var expiresAt: Timestamp { certificate.withLock(\.expiresAt) }

    /// Continues with a certificate that was read again.
    func replace(with latest: ServerCertificate) {
        certificate.withLock { $0 = latest }
        check()
    }

    /// Checks until the task is cancelled, more often than an alarm ends by itself.
    func checkRepeatedly() async {
        await time.repeat(every: .seconds(1800)) { check() }
    }

    func check() {
        guard let problem = CertificateProblem(certificate.withLock(\.self), at: time.now) else { return }
        log.raise(problem.kind, problem.sentence(about: path))
    }
}

/// The problem of a certificate that a person must fix.
enum CertificateProblem: Equatable {
    case notYetValid(from: Timestamp)
    case expiring(at: Timestamp)
    case expired(at: Timestamp)

    /// Most authorities and their tools renew with more time left.
    private static let maximumWarning: Duration = .seconds(14 * 86_400)

    /// Without this, certificates that live for a few days would always count as about to expire.
    private static let fractionOfLifetime = 4

    init?(validFrom: Timestamp, expiresAt: Timestamp, at now: Timestamp) {
        let warning = min(Self.maximumWarning, (expiresAt - validFrom) / Self.fractionOfLifetime)
        if now >= expiresAt {
            self = .expired(at: expiresAt)
        } else if now < validFrom {
            self = .notYetValid(from: validFrom)
        } else if expiresAt - now <= warning {
            self = .expiring(at: expiresAt)
        } else {
            return nil
        }
    }

    init?(_ certificate: ServerCertificate, at now: Timestamp) {
        self.init(validFrom: certificate.validFrom, expiresAt: certificate.expiresAt, at: now)
    }

    /// The kind of the alarm.
    var kind: AlarmKind {
        switch self {
        case .notYetValid: .certificateNotYetValid
        case .expiring: .certificateExpiring
        case .expired: .certificateExpired
        }
    }

    /// Returns the problem of the certificate in a file, and the advice to fix it.
    func sentence(about path: String) -> String {
        let renewal = "put the new certificate and its key in place, then run: systemctl reload refresh-worker"
        return switch self {
        case .notYetValid(let from): "\(path) is not valid before \(from.iso8601Seconds): check the clock"
        case .expiring(let end): "\(path) expires at \(end.iso8601Seconds): \(renewal)"
        case .expired(let end): "\(path) expired at \(end.iso8601Seconds), and services refuse it: \(renewal)"
        }
    }
}
