"""Downloads from a real server on this machine, which can break off, resume, and serve rubbish."""

import dataclasses
import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sparsevae.datasets import SOURCES, DownloadError, fetch, verify_file
from sparsevae.exceptions import DataError

CONTENT = bytes(range(256)) * 8000


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.ranges.append(self.headers.get("Range"))
        start = 0
        if self.path == "/absent":
            self.send_error(404)
            return
        if (wanted := self.headers.get("Range")) and server.resumes:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(server.content):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        body = server.content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.break_after])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.content, server.break_after, server.resumes, server.ranges = CONTENT, None, True, []
        server.url = f"http://127.0.0.1:{server.server_port}/file"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def source(monkeypatch):
    source = dataclasses.replace(
        SOURCES["zeisel"],
        name="sample",
        filename="sample.txt",
        size=len(CONTENT),
        checksum="sha256:" + hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setitem(SOURCES, "sample", source)
    return source


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_download_arrives_whole_and_alone(server, source, tmp_path):
    path = fetch("sample", directory=tmp_path / "new", url=server.url)
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["sample.txt"]


def test_the_data_directory_is_the_default(server, source, data_folder):
    assert fetch("sample", url=server.url) == data_folder / "sample.txt"


def test_a_good_copy_is_not_downloaded_again(server, source, tmp_path):
    fetch("sample", directory=tmp_path, url=server.url)
    fetch("sample", directory=tmp_path, url=server.url)
    assert len(server.ranges) == 1


def test_a_broken_download_leaves_no_file_under_the_final_name_and_is_resumed(server, source, tmp_path):
    server.break_after = 1_500_000
    with pytest.raises(DownloadError, match=r"after \d+ of 2048000 bytes.*put it at .*sample.txt"):
        fetch("sample", directory=tmp_path, url=server.url)
    assert names(tmp_path) == ["sample.txt.part"]
    server.break_after = None
    assert fetch("sample", directory=tmp_path, url=server.url).read_bytes() == CONTENT
    assert server.ranges[1] == "bytes=1500000-"
    assert names(tmp_path) == ["sample.txt"]


def test_a_server_that_cannot_resume_sends_all_again(server, source, tmp_path):
    (tmp_path / "sample.txt.part").write_bytes(b"old rubbish")
    server.resumes = False
    assert fetch("sample", directory=tmp_path, url=server.url).read_bytes() == CONTENT


def test_a_part_that_is_already_complete_is_used(server, source, tmp_path):
    (tmp_path / "sample.txt.part").write_bytes(CONTENT)
    assert fetch("sample", directory=tmp_path, url=server.url).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "content, phrase", [(CONTENT[:-1] + b"x", "damaged or another file"), (b"<html>", "got 6")]
)
def test_a_wrong_file_is_refused_by_name_and_removed(server, source, tmp_path, content, phrase):
    server.content = content
    with pytest.raises(DataError, match=rf"sample\.txt.*{phrase}"):
        fetch("sample", directory=tmp_path, url=server.url)
    assert names(tmp_path) == []


def test_a_damaged_copy_on_disk_is_refused_by_name(source, tmp_path):
    (tmp_path / "sample.txt").write_bytes(b"x" * len(CONTENT))
    with pytest.raises(DataError, match=r"sample\.txt with sha256"):
        fetch("sample", directory=tmp_path)


def test_without_verification_only_the_size_counts(source, tmp_path):
    (tmp_path / "sample.txt").write_bytes(b"x" * len(CONTENT))
    assert fetch("sample", directory=tmp_path, verify=False) == tmp_path / "sample.txt"


def test_offline_one_sentence_says_where_to_put_the_file(source, tmp_path):
    with pytest.raises(
        DownloadError, match=r"Could not download http://127.0.0.1:9/.*put it at .*sample.txt\.$"
    ) as e:
        fetch("sample", directory=tmp_path, url="http://127.0.0.1:9/file")
    assert isinstance(e.value, ConnectionError)
    assert names(tmp_path) == []


def test_an_address_that_is_gone_is_said_to_be_so(server, source, tmp_path):
    with pytest.raises(DownloadError, match=r"absent \(Not Found\)"):
        fetch("sample", directory=tmp_path, url=server.url.replace("/file", "/absent"))


def test_an_archive_without_known_checksum_is_tested_whole(source, tmp_path):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "hello " * 100)
    source = dataclasses.replace(source, filename="a.zip", size=None, checksum=None)
    good, cut, bad = tmp_path / "good.zip", tmp_path / "cut.zip", tmp_path / "bad.zip"
    good.write_bytes(archive.getvalue())
    cut.write_bytes(archive.getvalue()[:300])
    bad.write_bytes(archive.getvalue().replace(b"hello hello", b"hellO hello", 1))
    verify_file(good, source)
    with pytest.raises(DataError, match=r"cut\.zip"):
        verify_file(cut, source)
    with pytest.raises(DataError, match=r"bad\.zip.*a\.txt is damaged"):
        verify_file(bad, source)


def test_progress_is_drawn_on_stderr_when_asked(server, source, tmp_path, capsys):
    fetch("sample", directory=tmp_path, url=server.url, progress=True)
    captured = capsys.readouterr()
    assert "sample.txt" in captured.err
    assert captured.out == ""
