package import Base
package import HTTPServer
import Scheduler
import Synchronization
import Telemetry

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

    /// Checks once a day until the task is cancelled.
    func checkDaily() async {
        await PeriodicTask.run(every: .seconds(86_400), by: time) { check() }
    }

    func check() {
        guard let problem = CertificateProblem(certificate.withLock(\.self), at: time.now) else { return }
        log.raise(problem.kind, problem.sentence(about: path))
    }
}

/// The problem of a certificate that a person must fix.
package enum CertificateProblem: Equatable {
    case notYetValid(from: Timestamp)
    case expiring(at: Timestamp)
    case expired(at: Timestamp)

    /// Most authorities and their tools renew with more time left.
    private static let longestWarning: Duration = .seconds(14 * 86_400)

    /// Without this, certificates that live for a few days would always count as about to expire.
    private static let fractionOfLifetime = 4

    init?(validFrom: Timestamp, expiresAt: Timestamp, at now: Timestamp) {
        let warning = min(Self.longestWarning, (expiresAt - validFrom) / Self.fractionOfLifetime)
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

    package init?(_ certificate: ServerCertificate, at now: Timestamp) {
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
    package func sentence(about path: String) -> String {
        let renewal = "put the new certificate and its key in place, then run: systemctl reload refresh-worker"
        return switch self {
        case .notYetValid(let from): "\(path) is not valid before \(from.iso8601Seconds): check the clock"
        case .expiring(let end): "\(path) expires at \(end.iso8601Seconds): \(renewal)"
        case .expired(let end): "\(path) expired at \(end.iso8601Seconds), and services refuse it: \(renewal)"
        }
    }
}
