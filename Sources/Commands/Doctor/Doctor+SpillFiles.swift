import Base
import Crypto
import Worker

/// The check for spill files.
extension Doctor {
    func spillDiagnoses() -> [Diagnosis] {
        let subject = "spill files"
        let location = context.spillLocation(of: context.configuration.database)
        let files: [SpilledFile]
        do throws(SystemCallError) {
            files = try SpilledFile.list(in: location)
        } catch {
            let advice = "let the worker's user read the folder, which may hold results that were not stored"
            return [.warning(subject, "\(error)", advice: advice)]
        }
        guard !files.isEmpty else { return [.ok(subject, "none in \(location.folder)")] }
        return files.map { .warning(subject, $0.sentence(at: context.time.now)) }
    }
}
