// SPDX-License-Identifier: Apache-2.0
//! The seam to Python. Each entry checks lengths, and catches panics: then it has taken nothing, or
//! raises an ordinary exception, after which the broker goes the way in Python.

use crate::answers::Pieces;
use crate::ends::{Ending, Log};
use crate::hash::continued;
use crate::run::{HOST_BYTES, Target};
use crate::table::Teaching;
use crate::{SEAM, pulls, record, rows, run, table};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What works returns; `None` if there was a panic.
fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

fn defect() -> PyErr {
    PyRuntimeError::new_err("the compiled kernel has failed: use the form in Python instead")
}

fn wrong(why: &str) -> PyErr {
    PyValueError::new_err(why.to_owned())
}

/// The bytes of a buffer, to be read.
fn readable(buffer: &PyBuffer<u8>) -> PyResult<&[u8]> {
    if !buffer.is_c_contiguous() {
        return Err(wrong("the buffer is not contiguous"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer is held, so that its memory stays, and it is as long as it says. Nobody
    // else writes there meanwhile: whoever writes the log does not walk over what it writes.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) })
}

/// The bytes of a buffer, to be written.
fn writable(buffer: &mut PyBuffer<u8>) -> PyResult<&mut [u8]> {
    if !buffer.is_c_contiguous() || buffer.readonly() {
        return Err(wrong("the buffer is not contiguous, or cannot be written"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as above; and the caller holds the interpreter, so that no other code of the broker
    // reads or writes this part of the file before it returns.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), buffer.len_bytes()) })
}

/// Walks over the records of a file of the log; see the stub file.
#[pyfunction]
fn walk<'py>(
    py: Python<'py>,
    map: PyBuffer<u8>,
    from_offset: i64,
    start: usize,
    end: usize,
    check_crc: bool,
) -> PyResult<(usize, usize, Bound<'py, PyBytes>)> {
    let view = readable(&map)?;
    let done = py
        .detach(|| caught(|| record::walk(view, from_offset, start, end, check_crc)))
        .ok_or_else(defect)?;
    Ok((done.position, done.count, PyBytes::new(py, &done.rows)))
}

/// Packed units, between the log offsets where their messages begin and end.
type Packed<'py> = (i64, Bound<'py, PyBytes>, i64);

/// Topic, queue id, offset of the first, and the packed units.
type Units<'py> = (Bound<'py, PyBytes>, i32, i64, Packed<'py>);

fn packed<'py>(py: Python<'py>, units: &run::PackedUnits) -> Packed<'py> {
    (units.offset, PyBytes::new(py, &units.packed), units.end_offset)
}

/// Finds what follows from records for queues and the index; see the stub file.
#[pyfunction]
fn follow<'py>(
    py: Python<'py>,
    map: PyBuffer<u8>,
    from_offset: i64,
    start: usize,
    end: usize,
    rows: Option<PyRefMut<'py, Rows>>,
) -> PyResult<(usize, usize, i64, Vec<Units<'py>>)> {
    let view = readable(&map)?;
    let mut rows = rows;
    let rows = rows.as_deref_mut().map(|rows| &mut rows.rows);
    let done = caught(|| record::follow(view, from_offset, start, end, rows)).ok_or_else(defect)?;
    let units = done.units.iter().map(|units| {
        let topic = PyBytes::new(py, &units.topic);
        (topic, units.queue_id, units.first, packed(py, &units.units))
    });
    Ok((done.position, done.count, done.stored_ms, units.collect()))
}

/// The last file of the log, its first log offset, how many bytes it has, and from where on it is in
/// memory.
type LastFile = (PyBuffer<u8>, i64, usize, i64);

#[pyclass(module = "txrocketmq_kernel")]
struct Table {
    table: table::Table,
    queues: Vec<Py<PyAny>>,
}

#[pymethods]
impl Table {
    #[new]
    fn new(
        touched: Vec<Vec<u8>>,
        touched_in_batch: Vec<Vec<u8>>,
        touched_in_half: Vec<Vec<u8>>,
        own: Vec<u8>,
    ) -> Table {
        let table = table::Table::new(touched, touched_in_batch, touched_in_half, own);
        Table { table, queues: Vec::new() }
    }

    fn add_queue(
        &mut self,
        queue: Py<PyAny>,
        record_topic: &[u8],
        magic: i32,
        queue_id: i32,
    ) -> PyResult<u32> {
        let number = caught(|| self.table.add_queue(record_topic, magic, queue_id));
        let number = number.ok_or_else(defect)?.ok_or_else(|| wrong("this is no topic of a record"))?;
        self.queues.push(queue);
        Ok(number)
    }

    fn add_half(&mut self, queue_id: i32, before: &[u8], behind: &[u8]) -> PyResult<u32> {
        let number = caught(|| self.table.add_half(queue_id, before, behind));
        number.flatten().ok_or_else(defect)
    }

    fn expect_ends(&mut self, topic: &[u8], touched: Vec<Vec<u8>>) -> PyResult<()> {
        caught(|| self.table.expect_ends(topic, touched)).ok_or_else(defect)
    }

    fn add_target(&mut self, queue: u32, real: &[u8], sys_flag: i32) -> PyResult<u32> {
        let number = caught(|| self.table.add_target(queue, real, sys_flag)).ok_or_else(defect)?;
        number.ok_or_else(|| wrong("it is known already, or there is no such queue"))
    }

    fn learn_end(
        &mut self,
        kind: u8,
        header: &[u8],
        group: &[u8],
        is_commit: bool,
        oneway: bool,
        code: i32,
    ) -> bool {
        let ending = Ending { group: group.into(), is_commit, oneway, code };
        caught(|| self.table.learn_end(kind, header, ending)).unwrap_or(false)
    }

    fn add_account(&mut self, key: &[u8]) -> PyResult<u32> {
        let number = caught(|| self.table.add_account(key)).ok_or_else(defect)?;
        number.ok_or_else(|| wrong("the secret has another length"))
    }

    fn wipe(&mut self) -> PyResult<()> {
        caught(|| self.table.wipe()).ok_or_else(defect)
    }

    #[allow(clippy::too_many_arguments)]
    fn learn(
        &mut self,
        kind: u8,
        header: &[u8],
        queue: u32,
        is_batch: bool,
        oneway: bool,
        flag: i32,
        sys_flag: i32,
        reconsume: i32,
        code: i32,
        half: Option<u32>,
        origin: u64,
        account: Option<u32>,
    ) -> bool {
        let teaching = Teaching { queue, is_batch, oneway, flag, sys_flag, reconsume, code, half };
        caught(|| self.table.learn(kind, header, teaching, origin, account)).unwrap_or(false)
    }

    #[pyo3(signature = (data, origin, log=None, /))]
    fn take(
        &mut self,
        data: Bound<'_, PyBytes>,
        origin: u64,
        log: Option<Bound<'_, PyAny>>,
    ) -> Option<Run> {
        let (bytes, table) = (data.as_bytes(), &mut self.table);
        let (mut run, wants_log) = caught(|| {
            let mut run = table.begin(origin);
            let wants_log = table.take_more(bytes, origin, None, &mut run);
            (run, wants_log)
        })?;
        let file = log.filter(|_| wants_log).and_then(|log| log.call0().ok()?.extract::<LastFile>().ok());
        let log = file.as_ref().and_then(|(file, from_offset, end, least)| {
            let view = readable(file).ok()?.get(..*end)?;
            Some(Log { view, from_offset: *from_offset, least: *least })
        });
        if log.is_some() {
            caught(|| table.take_more(bytes, origin, log.as_ref(), &mut run))?;
        }
        let run = caught(|| table.finished(run)).flatten()?;
        Some(Run { run, data: data.unbind() })
    }
}

#[pyclass(module = "txrocketmq_kernel")]
struct Run {
    run: run::Run,
    data: Py<PyBytes>,
}

#[pymethods]
impl Run {
    #[getter]
    fn at(&self) -> usize {
        self.run.at
    }

    #[getter]
    fn commands(&self) -> usize {
        self.run.commands.len()
    }

    #[getter]
    fn messages(&self) -> usize {
        self.run.messages.len()
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.run.size_bytes
    }

    #[getter]
    fn most_bytes(&self) -> u64 {
        self.run.most_bytes
    }

    #[getter]
    fn waits(&self) -> bool {
        self.run.waits.unwrap_or(false)
    }

    fn queues(&self, py: Python<'_>, table: &Table) -> PyResult<Vec<(Py<PyAny>, u32, u64)>> {
        if self.run.table != table.table.id {
            return Err(wrong("the run is of another table"));
        }
        let queues = self.run.queues.iter().map(|of_queue| {
            let queue = table.queues.get(of_queue.queue as usize).ok_or_else(defect)?;
            Ok((queue.clone_ref(py), of_queue.messages, of_queue.bytes))
        });
        queues.collect()
    }

    #[allow(clippy::too_many_arguments)]
    fn write<'py>(
        &mut self,
        py: Python<'py>,
        table: &Table,
        mut map: PyBuffer<u8>,
        at: usize,
        offset: i64,
        nexts: Vec<i64>,
        now_ms: i64,
        born: &[u8],
        host: &[u8],
        rows: Option<PyRefMut<'py, Rows>>,
    ) -> PyResult<Vec<(Py<PyAny>, i64, Packed<'py>)>> {
        let (Ok(born), Ok(host)) = (<[u8; HOST_BYTES]>::try_from(born), host.try_into()) else {
            return Err(wrong("a host has to have 8 bytes"));
        };
        let target = Target { at, offset, now_ms, born, host };
        let (map, data) = (writable(&mut map)?, self.data.as_bytes(py));
        let mut rows = rows;
        let rows = rows.as_deref_mut().map(|rows| &mut rows.rows);
        let queue_of = |of_queue: &run::OfQueue| table.queues.get(of_queue.queue as usize);
        let queues: Option<Vec<&Py<PyAny>>> = self.run.queues.iter().map(queue_of).collect();
        let queues = queues.ok_or_else(|| wrong("the run is of another table"))?;
        let units = caught(|| self.run.write(&table.table, data, map, &target, &nexts, rows));
        let units = units.ok_or_else(defect)?.map_err(wrong)?;
        let found = queues.iter().zip(&nexts).zip(&units);
        Ok(found.map(|((queue, next), units)| (queue.clone_ref(py), *next, packed(py, units))).collect())
    }

    fn answers<'py>(
        &self,
        py: Python<'py>,
        _table: &Table,
        pieces: Vec<Bound<'py, PyBytes>>,
        batch: Vec<Bound<'py, PyBytes>>,
        host: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let pieces: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        let batch: Vec<&[u8]> = batch.iter().map(|piece| piece.as_bytes()).collect();
        let pieces = Pieces::of(&pieces, &batch)
            .ok_or_else(|| wrong("there have to be 6 and 5 pieces, or 7 and none"))?;
        let out = caught(|| self.run.answers(&pieces, host)).ok_or_else(defect)?;
        let out = out.ok_or_else(|| wrong("the run is not written yet"))?;
        Ok(PyBytes::new(py, &out))
    }

    #[getter]
    fn answered(&self) -> usize {
        self.run.answered()
    }

    fn kinds(&self) -> Vec<(i32, bool, usize)> {
        self.run.kinds()
    }

    fn opaques(&self) -> Vec<i32> {
        self.run.opaques()
    }

    fn halves(&self) -> Vec<(u32, usize)> {
        self.run.halves()
    }

    fn ends(&self) -> Vec<(i32, i64, i64, u32, bool)> {
        let ends = self.run.ended.iter();
        ends.map(|end| (end.queue_id, end.queue_offset, end.born_ms, end.target, end.is_commit)).collect()
    }
}

#[pyclass(module = "txrocketmq_kernel")]
struct Pulls {
    pulls: pulls::Pulls,
}

#[pymethods]
impl Pulls {
    #[new]
    fn new() -> Pulls {
        Pulls { pulls: pulls::Pulls::default() }
    }

    fn add_account(&mut self, key: &[u8]) -> PyResult<u32> {
        let number = caught(|| self.pulls.add_account(key)).ok_or_else(defect)?;
        number.ok_or_else(|| wrong("the secret has another length"))
    }

    fn wipe(&mut self) -> PyResult<()> {
        caught(|| self.pulls.wipe()).ok_or_else(defect)
    }

    fn learn(&mut self, kind: u8, header: &[u8], origin: u64, account: Option<u32>) -> Option<usize> {
        caught(|| self.pulls.learn(kind, header, origin, account)).flatten()
    }

    fn take(&mut self, data: &[u8], at: usize, origin: u64) -> Option<(usize, usize, i32, i64, i64)> {
        let taken = caught(|| self.pulls.take(data, at, origin)).flatten()?;
        Some((taken.place, taken.end, taken.opaque, taken.queue_offset, taken.commit_offset))
    }
}

/// How many messages, how many bytes, the head or the whole answer, and where else they lie.
type Answer<'py> = (usize, usize, Bound<'py, PyBytes>, Vec<(usize, usize)>);

/// Answers a pull by the records that the units of a queue name; see the stub file.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn pull_answer<'py>(
    py: Python<'py>,
    units: PyBuffer<u8>,
    log: PyBuffer<u8>,
    from_offset: i64,
    end: usize,
    least: i64,
    magic: i32,
    most: usize,
    most_bytes: usize,
    pieces: Vec<Bound<'py, PyBytes>>,
    opaque: i32,
    offsets: (i64, i64, i64),
) -> PyResult<Option<Answer<'py>>> {
    let pieces: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
    let pieces = pulls::Pieces::of(&pieces).ok_or_else(|| wrong("there have to be 5 or 6 pieces"))?;
    let (units, view) = (readable(&units)?, readable(&log)?);
    let view = view.get(..end).ok_or_else(|| wrong("the file is not so long"))?;
    let (first, min, max) = offsets;
    let found = caught(|| {
        let log = pulls::Log { view, from_offset, magic, least };
        let mut placed = pulls::place(units, &log, most, most_bytes)?;
        let next = first.checked_add(placed.count as i64)?;
        let mut out = pieces.head(opaque, [next, min, max], placed.size_bytes)?;
        if placed.is_copied() {
            out.reserve_exact(placed.size_bytes);
            for (begin, end) in std::mem::take(&mut placed.places) {
                out.extend_from_slice(&view[begin..end]);
            }
        }
        Some((out, placed))
    });
    let Some((out, placed)) = found.flatten() else { return Ok(None) };
    Ok(Some((placed.count, placed.size_bytes, PyBytes::new(py, &out), placed.places)))
}

/// What is indexed of a message, as Python has it.
type Entry<'py> = (
    Bound<'py, PyString>,
    Option<Bound<'py, PyString>>,
    Option<Bound<'py, PyString>>,
    Option<Bound<'py, PyString>>,
    i64,
    i64,
);

#[pyclass(module = "txrocketmq_kernel")]
struct Rows {
    rows: rows::Rows,
}

#[pymethods]
impl Rows {
    #[new]
    fn new() -> Rows {
        Rows { rows: rows::Rows::default() }
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn add(&mut self, entries: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut found: Vec<(u32, i64, i64)> = Vec::new();
        for entry in entries.try_iter()? {
            let (topic, uniq_key, keys, tags, offset, stored_ms): Entry = entry?.extract()?;
            let hash = continued(text_hash(0, &topic)?, b"#");
            if let Some(key) = uniq_key {
                found.push((text_hash(hash, &key)?, offset, stored_ms));
            }
            if let Some(keys) = keys {
                for word in keys.call_method1("split", (" ",))?.try_iter()? {
                    let word: Bound<'_, PyString> = word?.extract()?;
                    if word.is_truthy()? {
                        found.push((text_hash(hash, &word)?, offset, stored_ms));
                    }
                }
            }
            if let Some(tags) = tags
                && tags.is_truthy()?
            {
                found.push((text_hash(continued(hash, b"T#"), &tags)?, offset, stored_ms));
            }
        }
        for (hash, offset, stored_ms) in found {
            self.rows.add(hash, offset, stored_ms);
        }
        Ok(())
    }

    fn extend(&mut self, other: PyRef<'_, Rows>) {
        self.rows.extend(&other.rows);
    }

    fn put(
        &mut self,
        mut map: PyBuffer<u8>,
        slots: u32,
        items_at: usize,
        first: usize,
        begin_ms: i64,
    ) -> PyResult<usize> {
        let map = writable(&mut map)?;
        let count = caught(|| self.rows.put(map, slots, items_at, first, begin_ms));
        count.ok_or_else(defect)?.map_err(wrong)
    }
}

/// Continues a hash by a text, which may have halves of characters, as texts of Java may.
fn text_hash(hash: u32, text: &Bound<'_, PyString>) -> PyResult<u32> {
    if let Ok(text) = text.to_str() {
        return Ok(continued(hash, text.as_bytes()));
    }
    let units = text.call_method1("encode", ("utf-16-be", "surrogatepass"))?;
    let units: Bound<'_, PyBytes> = units.extract()?;
    Ok(units.as_bytes().chunks_exact(2).fold(hash, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(u32::from(u16::from_be_bytes([unit[0], unit[1]])))
    }))
}

/// The way of a message through txrocketmq, compiled.
#[pymodule]
fn txrocketmq_kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SEAM", SEAM)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Table>()?;
    module.add_class::<Run>()?;
    module.add_class::<Rows>()?;
    module.add_class::<Pulls>()?;
    module.add_function(wrap_pyfunction!(pull_answer, module)?)?;
    module.add_function(wrap_pyfunction!(follow, module)?)?;
    module.add_function(wrap_pyfunction!(walk, module)?)
}
