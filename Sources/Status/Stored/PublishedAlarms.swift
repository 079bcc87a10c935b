package import Base
package import Storage
package import Telemetry

/// The current alarms of all workers, kept as a note in the store so that the command `status` sees them too.
package struct PublishedAlarms: Sendable {
    private static let note = "alarms"
    private static let tries = 3

    private var entries: [Entry] = []

    private struct Entry {
        let worker: String
        let alarm: CurrentAlarm
    }

    /// Well below the shortest time that an alarm lasts, so that it does not end in the store before it does here.
    private static let maximumDelay: Duration = .seconds(240)

    /// Reads the alarms that are still current, of workers that live or whose alarms outlive them.
    package static func read(
        from store: any Store,
        living workers: [WorkerReport],
        at now: Timestamp
    ) async throws -> [CurrentAlarm] {
        let living = Set(workers.map(\.id))
        let entries = PublishedAlarms(try await store.note(note), at: now).entries.filter { entry in
            if living.contains(entry.worker) { return true }
            switch entry.alarm.kind.subject {
            case .worker: return false
            case .database: return living.isEmpty
            case .grants, .past: return true
            }
        }
        let all = entries.map(\.alarm)
        // Workers that share a database often see the same cause.
        return all.reduce(into: []) { found, alarm in
            if !found.contains(where: { $0.kind == alarm.kind && $0.client == alarm.client }) { found.append(alarm) }
        }
    }

    /// Replaces the alarms of one worker.
    package static func publish(
        _ alarms: [CurrentAlarm],
        of worker: String,
        in store: any Store,
        at now: Timestamp
    ) async throws {
        for _ in 0..<tries {
            let former = try await store.note(note)
            var published = PublishedAlarms(former, at: now)
            published.entries.removeAll { $0.worker == worker }
            published.entries += alarms.map { Entry(worker: worker, alarm: $0) }
            let text = published.text
            if text == former ?? PublishedAlarms().text { return }
            if try await store.replaceNote(note, from: former, with: text) { return }
        }
    }

    /// Returns `true` if a worker must publish its alarms again: after a change, and before they would count as over.
    ///
    /// Their counts do not matter, because they change with each refused grant.
    package static func mustPublish(_ alarms: [CurrentAlarm], after published: [CurrentAlarm]) -> Bool {
        guard alarms.count == published.count else { return true }
        return zip(alarms, published).contains { next, former in
            next.kind != former.kind || next.client != former.client || next.until - former.until > maximumDelay
        }
    }

    private init() {}

    /// Reads a note.
    ///
    /// An entry that cannot be read is left out, such as one with a kind of a newer version.
    private init(_ text: String?, at now: Timestamp) {
        let stored = text.flatMap { JSONValue.object(in: $0.utf8) }?["alarms"]?.array ?? []
        entries = stored.compactMap { entry in
            guard let worker = entry["worker"]?.string, let kind = entry["kind"]?.string.flatMap(AlarmKind.init),
                let client = entry["client"]?.string, let text = entry["text"]?.string,
                let since = entry["since"]?.integer, let until = entry["until"]?.integer,
                let count = entry["count"]?.integer, Timestamp(milliseconds: until) > now
            else { return nil }
            let alarm = CurrentAlarm(
                kind: kind,
                client: client,
                text: text,
                since: Timestamp(milliseconds: since),
                until: Timestamp(milliseconds: until),
                count: Int(count)
            )
            return Entry(worker: worker, alarm: alarm)
        }
    }

    private var text: String {
        var line = JSONLine()
        line.objects("alarms", entries) { entry, object in
            object.field("worker", entry.worker)
            object.field("kind", entry.alarm.kind.rawValue)
            object.field("client", entry.alarm.client)
            object.field("text", entry.alarm.text)
            object.field("since", entry.alarm.since.milliseconds)
            object.field("until", entry.alarm.until.milliseconds)
            object.field("count", entry.alarm.count)
        }
        return line.text
    }
}
