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
        await time.repeat(every: Self.interval) { check() }
    }

    static let interval: Duration = .seconds(60)
    /// Most authorities and their tools renew with more time left.
    static let maximumWarning: Duration = .seconds(14 * 86_400)
    /// Without this, certificates that live for a few days would always count as about to expire.
    static let fractionOfLifetime = 4

    /// An alarm about a certificate that a person must renew, and its sentence.
    struct Problem {
        let kind: AlarmKind
        let text: String
    }

    static func problem(
        in path: String,
        validFrom: Timestamp,
        expiresAt: Timestamp,
        at now: Timestamp
    ) -> Problem? {
        let end = expiresAt.iso8601Seconds
        let renewal = "put the new certificate and its key in place, then run: systemctl reload refresh-worker"
        if now >= expiresAt {
            let text = "\(path) expired at \(end), and services refuse it: \(renewal)"
            return Problem(kind: .certificateExpired, text: text)
        }
        if now < validFrom {
            let text = "\(path) is not valid before \(validFrom.iso8601Seconds): check the clock"
            return Problem(kind: .certificateNotYetValid, text: text)
        }
        let warning = min(maximumWarning, (expiresAt - validFrom) / fractionOfLifetime)
        guard expiresAt - now <= warning else { return nil }
        return Problem(kind: .certificateExpiring, text: "\(path) expires at \(end): \(renewal)")
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
    func problem(in path: String, at now: Timestamp) -> CertificateMonitor.Problem? {
        CertificateMonitor.problem(in: path, validFrom: validFrom, expiresAt: expiresAt, at: now)
    }
}
