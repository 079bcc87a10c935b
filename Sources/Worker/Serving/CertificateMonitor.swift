import Base
import HTTPServer
import Scheduler
import Synchronization

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
        log.reportCertificateProblem(problem.kind, problem.sentence(about: path))
    }
}
