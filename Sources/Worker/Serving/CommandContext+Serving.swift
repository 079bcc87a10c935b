import Base
package import Crypto
import HTTPClient
package import HTTPServer
package import Routes
import Scheduler
import Storage
import Telemetry

/// Opens the dependencies of the listeners and the notices; each error says how to fix it.
extension CommandContext {
    /// Reads the secrets of the app's own tokens: one, or two while one replaces the other.
    package func openSigner() throws -> TokenSigner {
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
            throw CommandFailure(.configuration, "\(source): \(error)")
        }
    }

    /// Reads the services that may get tokens.
    package func readServices() throws -> ServiceList {
        guard let path = configuration.servicesFile else {
            throw CommandFailure(.configuration, "--services-file is needed to vend tokens")
        }
        let text = try CommandContext.readPrivate(path, for: "--services-file")
        do throws(FormatError) {
            return try ServiceList(parsing: text.reveal().utf8)
        } catch {
            throw CommandFailure(.configuration, "--services-file: \(path): \(error)")
        }
    }

    /// Reads the certificate of the internal listener; `nil` if it serves plain HTTP.
    package func readInternalCertificate() throws -> ServerCertificate? {
        guard let path = configuration.internalCertificateFile, let keyPath = configuration.internalKeyFile else {
            return nil
        }
        let chain: [UInt8]
        do throws(InputError) {
            chain = try inputs.files.read(path)
        } catch {
            let code: ExitCode = error.mayPass ? .inputOutput : .configuration
            throw CommandFailure(code, "--internal-certificate: \(path) \(error.message)")
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
            throw CommandFailure(.configuration, "\(origin): \(error)")
        }
    }

    /// Reads the key that signs notices.
    package func openNoticeKey() throws -> MessageKey {
        guard let path = configuration.noticeSecretFile else {
            throw CommandFailure(.configuration, "--notice-secret-file is needed to sign notices")
        }
        let secret = try CommandContext.readPrivate(path, for: "--notice-secret-file").lines.first ?? Secret("")
        guard secret.count >= TokenSigner.minimumSecretLength else {
            throw CommandFailure(
                .configuration,
                """
                --notice-secret-file: \(path) holds \(secret.count) bytes, and at least \(TokenSigner.minimumSecretLength) are \
                needed: run: openssl rand -base64 48 >\(path)
                """
            )
        }
        return MessageKey(secret)
    }

    /// Returns the delivery of notices, if `--notice-url` is set.
    func openNotices(
        store: any Store,
        http: HTTPClient,
        metrics: MetricsLog,
        counters: IntervalCounters
    ) throws -> NoticeDispatcher? {
        guard let endpoint = configuration.noticeURL else { return nil }
        return NoticeDispatcher(
            store: store,
            http: http,
            endpoint: endpoint,
            key: try openNoticeKey(),
            workerName: workerName,
            metrics: metrics,
            counters: counters.lifetime,
            diagnostics: diagnostics,
            time: time,
            random: random
        )
    }

    /// Returns the address of a listener; `inherited` are the sockets that systemd passed.
    func listenAddress(_ location: ListenerLocation, inherited: [String: Int32]) throws -> ListenAddress {
        switch location {
        case .own(.unix(let path, mode: _)): return .unix(path: path, mode: configuration.socketMode)
        case .own(let address): return address
        case .systemd(let name):
            guard let descriptor = inherited[name] else {
                throw CommandFailure(
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
