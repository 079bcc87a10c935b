import Scheduler
import Telemetry

extension UnstoredResults {
    /// Logs that results could not be stored, and the file that has them.
    func report(to diagnostics: DiagnosticLog, keptIn path: String?) {
        if spilled > 0, let path {
            diagnostics.error(
                "results could not be stored and were kept in a file: the next start stores them, or results recover FILE",
                ["results": "\(spilled)", "file": path]
            )
        }
        if lost > 0 {
            diagnostics.error(
                "results could not be stored and are lost: where refresh tokens rotate, these users must sign in again",
                ["lost": "\(lost)"]
            )
        }
    }
}
