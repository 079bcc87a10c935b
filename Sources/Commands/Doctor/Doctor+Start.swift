import Crypto
import Worker

/// The rules of the daemon's start, and the user that the checks run as.
extension Doctor {
    /// One fault for each rule about settings that the daemon refuses to start with.
    ///
    /// The daemon checks the same function; `DoctorAgreementTests` runs a table of configurations through both.
    var startDiagnoses: [Diagnosis] {
        do throws(ConfigurationError) {
            try context.configuration.checkServing(environment: context.inputs.environment)
            return []
        } catch {
            return error.problems.map { .fault("settings", "\($0.origin) \($0.message)") }
        }
    }

    /// Continues as the service's user if root runs the doctor, because root may read and write everything.
    ///
    /// Root would find no file unreadable, and would take the key ring of the service for a foreign one.
    func becomeServiceUser() -> [Diagnosis] {
        guard ServiceUser.isRoot else { return [] }
        let subject = "user"
        do throws(SystemCallError) {
            guard let user = try serviceUser() else {
                if try ServiceUser(name: "refresh-worker") != nil {
                    let owned = "root owns the database or the key ring, but the service runs as refresh-worker"
                    return [.warning(subject, owned, advice: "give it the file, or the key ring by LoadCredential=")]
                }
                let advice =
                    "if the service has a user of its own, run: runuser -u refresh-worker -- refresh-worker doctor"
                return [
                    .ok(
                        subject,
                        "root, because no other user of this machine owns the database or the key ring; \(advice)"
                    )
                ]
            }
            try user.become()
            let line = "runuser -u \(user.name) -- refresh-worker …"
            return [.ok(subject, "root runs the doctor; it checks as \(user.name); run other commands so: \(line)")]
        } catch {
            return [.warning(subject, "root cannot check as the service's user: \(error)")]
        }
    }

    /// The owner of the database or of the key ring; before they exist, the user that the packages create.
    private func serviceUser() throws(SystemCallError) -> ServiceUser? {
        for path in [context.configuration.database.file, context.configuration.keyFile].compactMap(\.self) {
            guard let owner = try FileStatus.of(path)?.owner else { continue }
            return owner == 0 ? nil : try ServiceUser(id: owner)
        }
        return try ServiceUser(name: "refresh-worker")
    }
}
