import Base
import HTTPServer
import Scheduler
import Telemetry

/// Raises alarms about the certificate that a listener presents.
struct CertificateMonitor: Sendable {
    let certificate: Shared<ServerCertificate>
    let path: String
    let log: EngineLog
    let time: any TimeSource

    /// The end of the current certificate's validity.
    var expiresAt: Timestamp { certificate.value.expiresAt }

    /// Continues with a certificate that was read again.
    func replace(with latest: ServerCertificate) {
        certificate.value = latest
        check()
    }

    /// Checks until the task is cancelled.
    func checkRepeatedly() async {
        await time.repeat(every: .seconds(60)) { check() }
    }

    /// Most authorities and their tools renew with more time left.
    private static let maximumWarning: Duration = .seconds(14 * 86_400)
    /// Without this, certificates that live for a few days would always count as about to expire.
    private static let fractionOfLifetime = 4

    static func problem(
        in path: String,
        validFrom: Timestamp,
        expiresAt: Timestamp,
        at now: Timestamp
    ) -> (kind: AlarmKind, text: String)? {
        let (end, start) = (expiresAt.iso8601Seconds, validFrom.iso8601Seconds)
        let renewal = "put the new certificate and its key in place, then run: systemctl reload refresh-worker"
        if now >= expiresAt {
            return (.certificateExpired, "\(path) expired at \(end), and services refuse it: \(renewal)")
        }
        if now < validFrom { return (.certificateNotYetValid, "\(path) is not valid before \(start): check the clock") }
        let warning = min(maximumWarning, (expiresAt - validFrom) / fractionOfLifetime)
        return expiresAt - now <= warning ? (.certificateExpiring, "\(path) expires at \(end): \(renewal)") : nil
    }

    /// Raises the alarm about the certificate as it is now, and ends those that are over.
    func check() {
        let problem = certificate.value.problem(in: path, at: time.now)
        log.end(Self.kinds.filter { $0 != problem?.kind })
        if let problem { log.raise(problem.kind, problem.text) }
    }

    private static let kinds: [AlarmKind] = [.certificateExpiring, .certificateExpired, .certificateNotYetValid]
}

extension ServerCertificate {
    /// Returns the alarm about the certificate in a file that a person must renew, and its sentence.
    func problem(in path: String, at now: Timestamp) -> (kind: AlarmKind, text: String)? {
        CertificateMonitor.problem(in: path, validFrom: validFrom, expiresAt: expiresAt, at: now)
    }
}
