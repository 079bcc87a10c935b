import Base
import Crypto
import GoogleOAuth
import HTTPClient
import HTTPServer
import Routes
import Scheduler
import Storage
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
        let chain = try read(path, for: "--internal-certificate")
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
    /// It has an HTTP client of its own. A receiver can keep a client's thread busy through TLS, and that must not delay
    /// requests to Google.
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

/// The place of a login's keys.
enum KeyLocation: Equatable, Sendable {
    case endpoint(Endpoint)
    case file(String)
}

extension SettingValue {
    static func keyLocations(_ text: String) throws(InputError) -> [KeyLocation] {
        try list(text, of: "URL or file") { piece throws(InputError) in
            piece.contains("://") ? .endpoint(try endpoint(piece)) : .file(piece)
        }
    }
}

extension CommandContext {
    /// `true` if a secret of the app's own tokens is configured.
    var hasAppSecret: Bool { configuration.hasAppSecret(environment: inputs.environment) }

    /// Reads a file with the keys of a login.
    func readAppKeys(_ path: String) throws -> KeySet {
        guard let set = KeySet(JSONValue.object(in: try read(path, for: "--app-keys"))) else {
            throw CommandError(
                .configuration,
                "--app-keys: \(path) is no JSON Web Key Set with a usable key: with a kid, RSA of at least 2048 bits or P-256"
            )
        }
        return set
    }

    /// Returns the verification of the app's own tokens, for both listeners.
    func openAppTokens(store: any Store) throws -> AppTokens {
        let isUsed = configuration.verifiesAppTokens
        return AppTokens(
            signer: isUsed && hasAppSecret ? try openSigner() : nil,
            keySets: isUsed ? try openKeySets(configuration.appKeys) : [],
            issuer: configuration.appIssuer,
            audience: configuration.appAudience,
            userClaim: configuration.appUserClaim,
            store: store,
            time: time
        )
    }

    /// Returns the keys of logins, which have an HTTP client of their own, as notices do.
    private func openKeySets(_ locations: [KeyLocation]) throws -> [KeySetCache] {
        guard !locations.isEmpty else { return [] }
        let http = try openHTTP(maximumInFlight: locations.count)
        return try locations.map { location in
            switch location {
            case .endpoint(let endpoint):
                return KeySetCache(.keys(endpoint), http: http, time: time)
            case .file(let path):
                _ = try readAppKeys(path)
                return KeySetCache(.file { try read(path, for: "--app-keys") }, http: http, time: time)
            }
        }
    }
}
